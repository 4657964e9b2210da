"""The official ``openai`` package, unmodified, against the server over a socket."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import openai
import pydantic
import pytest

from interlock.api.scripted import call, finish, text, thinking
from interlock.core.events import TextDelta
from interlock.core.output_format import JsonSchemaFormat
from interlock.core.tools import ToolChoice
from interlock.errors import InterlockError, Problem

MESSAGES: list[Any] = [{"role": "user", "content": "Hi"}]
MODEL = "scripted"


class City(pydantic.BaseModel):
    name: str
    population: int


class GetWeather(pydantic.BaseModel):
    city: str


PARIS = '{"name": "Paris", "population": 2}'
WEATHER_TOOL = openai.pydantic_function_tool(GetWeather, name="get_weather")
WEATHER_CALL = [*call("get_weather", ['{"city"', ': "Paris"}']), *finish()]


def test_create(scripted, client) -> None:
    scripted.plays([*thinking("hm"), *text("Hello", " there.")])
    answer = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, temperature=0, max_completion_tokens=9
    )
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Hello there.", "stop")
    assert choice.message.refusal is None
    assert choice.message.tool_calls is None
    assert choice.message.model_extra == {"reasoning_content": "hm"}
    assert answer.usage.total_tokens == 19
    assert answer.usage.prompt_tokens_details.cached_tokens == 4
    assert scripted.requests[-1].max_tokens == 9


def test_stream(scripted, client) -> None:
    scripted.plays(text("Hel", "lo"))
    stream = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    *chunks, last = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, None, "stop"]
    assert (last.choices, last.usage.completion_tokens) == ([], 7)


def test_parse_a_response_format(scripted, client) -> None:
    scripted.plays(text(PARIS))
    answer = client.chat.completions.parse(model=MODEL, messages=MESSAGES, response_format=City)
    assert answer.choices[0].message.parsed == City(name="Paris", population=2)
    output_format = scripted.requests[-1].output_format
    assert isinstance(output_format, JsonSchemaFormat)
    assert output_format.strict is True
    assert list(json.loads(output_format.schema)["properties"]) == ["name", "population"]


def test_parse_strict_tools_beside_a_response_format(scripted, client) -> None:
    scripted.plays(WEATHER_CALL)
    answer = client.chat.completions.parse(
        model=MODEL, messages=MESSAGES, tools=[WEATHER_TOOL], response_format=City, tool_choice="auto"
    )
    choice = answer.choices[0]
    (tool_call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert tool_call.function.parsed_arguments == GetWeather(city="Paris")
    request = scripted.requests[-1]
    assert request.tools[0].strict is True
    assert request.tool_choice == ToolChoice(mode="auto")


def test_the_stream_helper_with_a_response_format(scripted, client) -> None:
    scripted.plays(text(PARIS[:10], PARIS[10:]))
    with client.chat.completions.stream(model=MODEL, messages=MESSAGES, response_format=City) as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_completion()
    assert kinds[-1] == "content.done"
    assert "content.delta" in kinds
    assert answer.choices[0].message.parsed == City(name="Paris", population=2)


def test_the_stream_helper_with_two_calls(scripted, client) -> None:
    scripted.plays(
        [
            *call("get_weather", ['{"city"', ': "Rome"}']),
            *call("get_weather", ['{"city": "Oslo"}'], index=1),
            *finish(),
        ]
    )
    with client.chat.completions.stream(model=MODEL, messages=MESSAGES, tools=[WEATHER_TOOL]) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        answer = stream.get_final_completion()
    assert [event.parsed_arguments for event in done] == [GetWeather(city="Rome"), GetWeather(city="Oslo")]
    calls = answer.choices[0].message.tool_calls
    assert [tool_call.function.parsed_arguments.city for tool_call in calls] == ["Rome", "Oslo"]
    assert len({tool_call.id for tool_call in calls}) == 2


def test_an_answer_can_be_sent_back_as_it_came(scripted, client) -> None:
    scripted.plays(WEATHER_CALL)
    first = client.chat.completions.create(model=MODEL, messages=MESSAGES, tools=[WEATHER_TOOL])
    message = first.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}
    scripted.plays(text("It is sunny."))
    for assistant in (message, message.model_dump()):
        client.chat.completions.create(
            model=MODEL, messages=[*MESSAGES, assistant, result], tools=[WEATHER_TOOL]
        )
        _, sent, answered = scripted.requests[-1].messages
        assert (sent.tool_calls[0].arguments, answered.content) == ('{"city": "Paris"}', "sunny")
        assert sent.content is None


def test_an_answer_cut_by_length_raises_in_the_parsers(scripted, client) -> None:
    scripted.plays([TextDelta(text=PARIS[:10]), *finish("length")])
    options = {"model": MODEL, "messages": MESSAGES, "response_format": City}
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**options)
    with client.chat.completions.stream(**options) as stream, pytest.raises(openai.LengthFinishReasonError):
        stream.until_done()


ERRORS = [
    ("invalid_schema", openai.BadRequestError),
    ("unsupported_parameter", openai.BadRequestError),
    ("overloaded", openai.RateLimitError),
    ("not_ready", openai.InternalServerError),
    ("worker_died", openai.InternalServerError),
    ("body_too_large", openai.APIStatusError),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("code", "error_class"), ERRORS)
def test_errors_before_the_first_byte(scripted, client, code: str, error_class: type, stream: bool) -> None:
    problem = Problem(reason="not supported", keyword="not", pointer="/not")
    scripted.plays(InterlockError(code, "it is wrong", param="a[0].b", problems=(problem,)))
    with pytest.raises(error_class) as caught:
        client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=stream)
    error = caught.value
    assert (error.code, error.param) == (code, "a[0].b")
    assert error.body["problems"] == [{"keyword": "not", "pointer": "/not", "reason": "not supported"}]
    assert error.request_id.startswith("req_")


def test_a_wrong_request_names_its_field(client) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=MESSAGES, n=0)
    assert (caught.value.param, caught.value.code) == ("n", "invalid_value")


def test_an_unknown_model_is_not_found(client) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="nope", messages=MESSAGES)
    assert (caught.value.param, caught.value.code) == ("model", "model_not_found")


def test_a_wrong_key_is_an_authentication_error(scripted, make_client) -> None:
    with pytest.raises(openai.AuthenticationError) as caught:
        make_client(scripted.url, "wrong").models.list()
    assert caught.value.code == "invalid_api_key"


def test_an_error_in_the_middle_of_a_stream_is_raised(scripted, client) -> None:
    scripted.plays([TextDelta(text="a"), InterlockError("worker_died", "the worker stopped")])
    stream = client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
    with pytest.raises(openai.APIError, match="the worker stopped") as caught:
        list(stream)
    assert caught.value.code == "worker_died"


def test_models(client) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL


def test_own_fields_go_through_extra_body(scripted, client) -> None:
    scripted.plays(text("x"))
    client.chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        extra_body={"structured_outputs": {"regex": "a+"}, "tool_constraints": "all"},
    )
    assert scripted.requests[-1].output_format.pattern == "a+"
    assert scripted.requests[-1].tool_constraints == "all"


def test_ignored_fields_are_named_in_the_raw_response(scripted, client) -> None:
    scripted.plays(text("x"))
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=MESSAGES, user="me", store=True
    )
    assert raw.headers["x-interlock-ignored"] == "store, user"


def test_a_client_that_closes_its_stream_ends_the_generation(scripted, client) -> None:
    closed = threading.Event()
    scripted.service.on_close = closed.set
    scripted.plays([TextDelta(text="a"), asyncio.Event()])
    stream = client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
    next(iter(stream))
    stream.close()
    assert closed.wait(10)


def test_a_client_that_gives_up_waiting_ends_the_generation(scripted, client) -> None:
    closed = threading.Event()
    scripted.service.on_close = closed.set
    scripted.plays([asyncio.Event()])
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.2).chat.completions.create(model=MODEL, messages=MESSAGES)
    assert closed.wait(10)
