"""The official ``ollama`` package, unmodified, against the server over a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator

import ollama
import pytest

from interlock.api.scripted import USAGE, call, finish, text, thinking
from interlock.core.events import TextDelta
from interlock.core.output_format import JsonObjectFormat, JsonSchemaFormat
from interlock.errors import InterlockError

KEY = "test-key"
MODEL = "scripted"
MESSAGES = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
      city: Its name
    """
    return f"sun in {city}"


@pytest.fixture(scope="module")
def llama(scripted) -> Iterator[ollama.Client]:
    client = ollama.Client(host=scripted.url, headers={"authorization": f"Bearer {KEY}"}, timeout=20)
    yield client
    client._client.close()


def test_chat(scripted, llama) -> None:
    scripted.plays([*thinking("hm"), *text("Hello", " there.")])
    answer = llama.chat(model=MODEL, messages=MESSAGES, think=True, options={"num_predict": 9, "seed": 4})
    assert (answer.message.content, answer.message.thinking) == ("Hello there.", "hm")
    assert (answer.done, answer.done_reason, answer.eval_count) == (True, "stop", USAGE.completion_tokens)
    request = scripted.requests[-1]
    assert (request.max_tokens, request.sampling.seed, request.reasoning.enabled) == (9, 4, True)


def test_chat_streamed(scripted, llama) -> None:
    scripted.plays([*thinking("hm"), *text("Hel", "lo")])
    *parts, last = llama.chat(model=f"{MODEL}:latest", messages=MESSAGES, stream=True)
    assert "".join(part.message.content for part in parts) == "Hello"
    assert parts[0].message.thinking == "hm"
    assert last.done
    assert not any(part.done for part in parts)


def test_format(scripted, llama) -> None:
    scripted.plays(text('{"a": 1}'))
    llama.chat(model=MODEL, messages=MESSAGES, format="json")
    assert scripted.requests[-1].output_format == JsonObjectFormat()
    llama.generate(model=MODEL, prompt="Hi", format=SCHEMA)
    found = scripted.requests[-1].output_format
    assert isinstance(found, JsonSchemaFormat)
    assert (json.loads(found.schema), found.param) == (SCHEMA, "format")


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_and_the_way_back(scripted, llama, stream: bool) -> None:
    scripted.plays([TextDelta(text="I look."), *call("get_weather", ['{"city"', ': "Paris"}']), *finish()])
    if stream:
        parts = list(llama.chat(model=MODEL, messages=MESSAGES, tools=[get_weather], stream=True))
        (message,) = [part.message for part in parts if part.message.tool_calls]
    else:
        message = llama.chat(model=MODEL, messages=MESSAGES, tools=[get_weather]).message
    (used,) = message.tool_calls
    assert (used.function.name, used.function.arguments) == ("get_weather", {"city": "Paris"})
    scripted.plays(text("Sunny."))
    result = {"role": "tool", "content": get_weather(**used.function.arguments), "tool_name": "get_weather"}
    llama.chat(model=MODEL, messages=[*MESSAGES, message, result], tools=[get_weather])
    _, assistant, tool = scripted.requests[-1].messages
    assert assistant.tool_calls[0].id == tool.tool_call_id
    assert json.loads(assistant.tool_calls[0].arguments) == {"city": "Paris"}
    assert tool.content == "sun in Paris"


def test_generate(scripted, llama) -> None:
    scripted.plays(text("Hel", "lo"))
    answer = llama.generate(model=MODEL, prompt="Hi", system="Be brief.")
    assert (answer.response, answer.done_reason) == ("Hello", "stop")
    assert [message.role for message in scripted.requests[-1].messages] == ["system", "user"]
    assert "".join(part.response for part in llama.generate(model=MODEL, prompt="Hi", stream=True)) == "Hello"
    llama.generate(model=MODEL, prompt="Hi", raw=True)
    assert (scripted.requests[-1].prompt, scripted.requests[-1].messages) == ("Hi", ())


def test_models(llama) -> None:
    assert [model.model for model in llama.list().models] == [MODEL]
    assert "tools" in llama.show(MODEL).capabilities
    with pytest.raises(ollama.ResponseError) as caught:
        llama.show("nope")
    assert caught.value.status_code == 404


def test_errors(scripted, llama) -> None:
    scripted.plays(InterlockError("invalid_schema", "it cannot be held"))
    with pytest.raises(ollama.ResponseError, match="it cannot be held") as caught:
        llama.chat(model=MODEL, messages=MESSAGES, stream=False)
    assert caught.value.status_code == 400
    scripted.plays([TextDelta(text="a"), InterlockError("worker_died", "the worker stopped")])
    with pytest.raises(ollama.ResponseError, match="the worker stopped"):
        list(llama.chat(model=MODEL, messages=MESSAGES, stream=True))
