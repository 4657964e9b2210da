"""Responses by the official ``openai`` package, unmodified, against the server over a socket."""

from __future__ import annotations

import json
from typing import Any

import openai
import pydantic
import pytest

from interlock.api.scripted import USAGE, call, finish, text, thinking
from interlock.core.events import TextDelta
from interlock.core.output_format import JsonSchemaFormat
from interlock.core.tools import ToolChoice
from interlock.errors import InterlockError

MODEL = "scripted"
TOOL: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather",
    "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CUSTOM: Any = {
    "type": "custom",
    "name": "patch",
    "description": "Edit",
    "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+\\n"},
}
WEATHER = [
    *thinking("hm"),
    TextDelta(text="I look."),
    *call("get_weather", ['{"city"', ': "Paris"}']),
    *finish(),
]
PATCH = [*call("patch", ['{"input"', ': "ab', "\\", 'n"}']), *finish()]


class City(pydantic.BaseModel):
    name: str
    population: int


def test_create(scripted, client) -> None:
    scripted.plays([*thinking("hm"), *text("Hello", " there.")])
    answer = client.responses.create(model=MODEL, input="Hi", instructions="Be brief.", max_output_tokens=9)
    assert answer.output_text == "Hello there."
    assert (answer.status, answer.error, answer.incomplete_details) == ("completed", None, None)
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.output[0].content[0].text == "hm"
    assert answer.usage.total_tokens == USAGE.total_tokens
    assert answer.usage.input_tokens_details.cached_tokens == USAGE.cached_tokens
    assert answer.usage.output_tokens_details.reasoning_tokens == USAGE.reasoning_tokens
    request = scripted.requests[-1]
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.max_tokens == 9


def test_a_call_and_the_way_back(scripted, client) -> None:
    scripted.plays(WEATHER)
    first = client.responses.create(
        model=MODEL, input="Hi", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"}
    )
    used = first.output[-1]
    assert (used.type, used.name, json.loads(used.arguments)) == (
        "function_call",
        "get_weather",
        {"city": "Paris"},
    )
    assert scripted.requests[-1].tool_choice == ToolChoice(mode="named", name="get_weather")
    scripted.plays(text("Sunny."))
    result: Any = {"type": "function_call_output", "call_id": used.call_id, "output": "sun"}
    client.responses.create(model=MODEL, input=[result], tools=[TOOL], previous_response_id=first.id)
    by_id = scripted.requests[-1].messages
    history: Any = [{"role": "user", "content": "Hi"}, *[item.to_dict() for item in first.output], result]
    client.responses.create(model=MODEL, input=history, tools=[TOOL])
    assert scripted.requests[-1].messages == by_id
    user, assistant, tool = by_id
    assert (user.content, assistant.reasoning, assistant.content, tool.content) == (
        "Hi",
        "hm",
        "I look.",
        "sun",
    )
    assert assistant.tool_calls[0].id == tool.tool_call_id == used.call_id


def test_the_streaming_helper(scripted, client) -> None:
    scripted.plays(WEATHER)
    with client.responses.stream(model=MODEL, input="Hi", tools=[TOOL]) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]
    assert final.output[-1].arguments == '{"city": "Paris"}'


def test_a_custom_tool(scripted, client) -> None:
    scripted.plays(PATCH)
    answer = client.responses.create(model=MODEL, input="Hi", tools=[CUSTOM])
    (used,) = answer.output
    assert (used.type, used.name, used.input) == ("custom_tool_call", "patch", "ab\n")
    (tool,) = scripted.requests[-1].tools
    assert tool.strict
    assert tool.schema()["properties"]["input"] == {"type": "string", "pattern": "^(?:[a-z]+\\n)$"}
    result: Any = {"type": "custom_tool_call_output", "call_id": used.call_id, "output": "done"}
    client.responses.create(model=MODEL, input=[result], tools=[CUSTOM], previous_response_id=answer.id)
    assert json.loads(scripted.requests[-1].messages[1].tool_calls[0].arguments) == {"input": "ab\n"}


def test_a_custom_tool_streamed(scripted, client) -> None:
    scripted.plays(PATCH)
    stream = client.responses.create(model=MODEL, input="Hi", tools=[CUSTOM], stream=True)
    events = list(stream)
    deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    (done,) = [event.input for event in events if event.type == "response.custom_tool_call_input.done"]
    assert "".join(deltas) == done == "ab\n"
    assert len(deltas) > 1


def test_parse(scripted, client) -> None:
    scripted.plays(text('{"name": "Paris", "population": 2}'))
    answer = client.responses.parse(model=MODEL, input="Hi", text_format=City)
    assert answer.output_parsed == City(name="Paris", population=2)
    assert isinstance(scripted.requests[-1].output_format, JsonSchemaFormat)


def test_an_answer_that_was_cut_is_incomplete(scripted, client) -> None:
    scripted.plays(text("Hel", reason="length"))
    answer = client.responses.create(model=MODEL, input="Hi")
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    events = list(client.responses.create(model=MODEL, input="Hi", stream=True))
    assert events[-1].type == "response.incomplete"


def test_stored_responses(scripted, client) -> None:
    scripted.plays(text("Hello"))
    kept = client.responses.create(model=MODEL, input="Hi", metadata={"a": "b"})
    assert client.responses.retrieve(kept.id).output_text == "Hello"
    (item,) = client.responses.input_items.list(kept.id).data
    assert item.content[0].text == "Hi"
    client.responses.delete(kept.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(kept.id)
    forgotten = client.responses.create(model=MODEL, input="Hi", store=False)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="Hi", previous_response_id=forgotten.id)
    assert caught.value.param == "previous_response_id"


def test_an_error_in_the_middle_of_a_stream_is_a_failed_response(scripted, client) -> None:
    scripted.plays([TextDelta(text="a"), InterlockError("worker_died", "the worker stopped")])
    *_, last = client.responses.create(model=MODEL, input="Hi", stream=True)
    assert (last.type, last.response.error.message) == ("response.failed", "the worker stopped")


def test_errors_before_the_first_byte_name_the_field(scripted, client) -> None:
    scripted.plays(InterlockError("invalid_schema", "it is wrong", param="tools[0].function.parameters"))
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="Hi", tools=[TOOL], stream=True)
    assert caught.value.param == "tools[0].parameters"


# Completions


def test_completions(scripted, client) -> None:
    scripted.plays(text("Hello", " there."))
    answer = client.completions.create(model=MODEL, prompt="Hi", max_tokens=9)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("Hello there.", "stop")
    chunks = client.completions.create(model=MODEL, prompt=[[1, 2], [3]], stream=True)
    texts = {0: "", 1: ""}
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == {0: "Hello there.", 1: "Hello there."}
