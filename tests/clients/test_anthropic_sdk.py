"""The official ``anthropic`` package, unmodified, against the server over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pydantic
import pytest

from interlock.api.scripted import USAGE, call, finish, text, thinking
from interlock.core.events import Finished, TextDelta
from interlock.core.output_format import JsonSchemaFormat
from interlock.core.tools import ToolChoice
from interlock.errors import InterlockError

KEY = "test-key"
MODEL = "scripted"
MESSAGES: list[Any] = [{"role": "user", "content": "Hi"}]
TOOL: Any = {
    "name": "get_weather",
    "description": "Weather",
    "strict": True,
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
WEATHER = [
    *thinking("hm"),
    TextDelta(text="I look."),
    *call("get_weather", ['{"city"', ': "Paris"}']),
    *finish(),
]


class City(pydantic.BaseModel):
    name: str
    population: int


@pytest.fixture(scope="module")
def claude(scripted) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=scripted.url, api_key=KEY, max_retries=0, timeout=20) as client:
        yield client


def test_create(scripted, claude) -> None:
    scripted.plays(text("Hello", " there."))
    answer = claude.messages.create(model=MODEL, max_tokens=9, messages=MESSAGES, system="Be brief.")
    assert [block.text for block in answer.content] == ["Hello there."]
    assert (answer.stop_reason, answer.role, answer.type) == ("end_turn", "assistant", "message")
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens == USAGE.prompt_tokens
    assert scripted.requests[-1].messages[0].content == "Be brief."


def test_a_call_and_the_way_back(scripted, claude) -> None:
    scripted.plays(WEATHER)
    choice: Any = {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}
    answer = claude.messages.create(
        model=MODEL,
        max_tokens=2000,
        messages=MESSAGES,
        tools=[TOOL],
        tool_choice=choice,
        thinking={"type": "enabled", "budget_tokens": 1024},
    )
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use"]
    used = answer.content[-1]
    assert (used.name, used.input, answer.stop_reason) == ("get_weather", {"city": "Paris"}, "tool_use")
    request = scripted.requests[-1]
    assert request.tool_choice == ToolChoice(mode="named", name="get_weather")
    assert (request.parallel_tool_calls, request.tools[0].strict) == (False, True)
    assert (request.reasoning.enabled, request.reasoning.budget) == (True, 1024)

    scripted.plays(text("Sunny."))
    result: Any = {"type": "tool_result", "tool_use_id": used.id, "content": "sun"}
    conversation: Any = [
        *MESSAGES,
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [result]},
    ]
    claude.messages.create(model=MODEL, max_tokens=9, messages=conversation, tools=[TOOL])
    _, assistant, tool = scripted.requests[-1].messages
    assert (assistant.reasoning, assistant.content) == ("hm", "I look.")
    assert assistant.tool_calls[0].id == tool.tool_call_id == used.id
    assert tool.content == "sun"


def test_the_streaming_helper(scripted, claude) -> None:
    scripted.plays(WEATHER)
    with claude.messages.stream(model=MODEL, max_tokens=99, messages=MESSAGES, tools=[TOOL]) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_message()
    assert {"thinking", "text", "input_json", "signature"} <= set(kinds)
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert message.content[-1].input == {"city": "Paris"}
    assert (message.content[0].thinking, message.stop_reason) == ("hm", "tool_use")
    assert message.usage.output_tokens == USAGE.completion_tokens


def test_raw_streaming(scripted, claude) -> None:
    scripted.plays([TextDelta(text="a"), Finished(reason="stop", usage=USAGE, stop_string="END")])
    stream = claude.messages.create(
        model=MODEL, max_tokens=9, messages=MESSAGES, stop_sequences=["END"], stream=True
    )
    events = list(stream)
    delta = next(event for event in events if event.type == "message_delta")
    assert (delta.delta.stop_reason, delta.delta.stop_sequence) == ("stop_sequence", "END")


def test_parse(scripted, claude) -> None:
    scripted.plays(text('{"name": "Paris", "population": 2}'))
    answer = claude.messages.parse(model=MODEL, max_tokens=99, messages=MESSAGES, output_format=City)
    assert answer.parsed_output == City(name="Paris", population=2)
    assert isinstance(scripted.requests[-1].output_format, JsonSchemaFormat)


def test_count_tokens(claude) -> None:
    counted = claude.messages.count_tokens(model=MODEL, messages=MESSAGES, tools=[TOOL])
    assert counted.input_tokens == USAGE.prompt_tokens


@pytest.mark.parametrize(
    ("code", "error_class"),
    [
        ("invalid_schema", anthropic.BadRequestError),
        ("model_not_found", anthropic.NotFoundError),
        ("overloaded", anthropic.InternalServerError),
        ("worker_died", anthropic.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_before_the_first_byte(scripted, claude, code: str, error_class: type, stream: bool) -> None:
    scripted.plays(InterlockError(code, "it is wrong", param="tools[0].function.parameters"))
    with pytest.raises(error_class) as caught:
        claude.messages.create(model=MODEL, max_tokens=9, messages=MESSAGES, stream=stream)
    assert caught.value.body["error"]["param"] == "tools[0].input_schema"


def test_a_wrong_key_is_an_authentication_error(scripted) -> None:
    with (
        anthropic.Anthropic(base_url=scripted.url, api_key="wrong", max_retries=0) as client,
        pytest.raises(anthropic.AuthenticationError),
    ):
        client.messages.create(model=MODEL, max_tokens=9, messages=MESSAGES)


def test_an_error_in_the_middle_of_a_stream_is_raised(scripted, claude) -> None:
    scripted.plays([TextDelta(text="a"), InterlockError("worker_died", "the worker stopped")])
    with (
        pytest.raises(anthropic.APIError, match="the worker stopped"),
        claude.messages.stream(model=MODEL, max_tokens=9, messages=MESSAGES) as stream,
    ):
        stream.get_final_message()
