"""Events to answers: the object, the stream, and that both say the same."""

from __future__ import annotations

import pytest

from interlock.api.scripted import USAGE, ScriptedService, call, finish, text, thinking
from interlock.core.events import Failed, TextDelta, ToolCallEnd
from interlock.core.tools import ToolContext
from interlock.errors import InterlockError

CHEAP = ToolContext(constrained=True, constrained_reason="tool_choice requires a call")

SCRIPTS = {
    "text": text("Hel", "lo", " wörld\u2028 \U0001f600"),
    "empty": text(),
    "length": text("Hel", reason="length"),
    "thinking": [*thinking("hm", "…"), *text("yes")],
    "call": [*call("f", ['{"a"', ": ", "1}"]), *finish()],
    "call without arguments": [*call("f", ["{}"]), *finish()],
    "text and call": [TextDelta(text="let me see"), *call("f", ["{}"]), *finish()],
    "two calls": [*call("f", ['{"a":1}']), *call("g", ["{", "}"], index=1), *finish()],
    "thinking and call": [*thinking("so"), *call("f", ["{}"]), *finish()],
    "cut call": [*call("f", ["{}"]), *call("g", ['{"a'], index=1, complete=False), *finish("length")],
    "cut call without arguments": [*call("g", [], complete=False), *finish("length")],
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_streamed_and_a_whole_answer_are_the_same(make_api, name: str) -> None:
    api = make_api(ScriptedService(lambda _: SCRIPTS[name], tools=CHEAP, notes=("note",)))
    whole = (await api.chat()).json()
    options = {"include_usage": True}
    *chunks, usage_chunk, _ = await api.events(stream_options=options)
    choice = whole["choices"][0]
    assert await api.folded(stream_options=options) == (
        choice["message"],
        choice["finish_reason"],
        whole.get("interlock"),
    )
    assert usage_chunk["choices"] == []
    assert usage_chunk["usage"] == whole["usage"]
    assert all(chunk["usage"] is None for chunk in chunks)
    assert {chunk["id"] for chunk in [*chunks, usage_chunk]} == {usage_chunk["id"]}


async def test_the_whole_object(make_api) -> None:
    api = make_api(ScriptedService(lambda _: [*thinking("hm"), *call("f", ['{"a": 1}']), *finish()]))
    body = (await api.chat()).json()
    assert body.pop("id").startswith("chatcmpl-")
    assert isinstance(body.pop("created"), int)
    assert body == {
        "object": "chat.completion",
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {
                            "id": "call_00000000000000000000000000000000",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"a": 1}'},
                        }
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 7,
            "total_tokens": 19,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_the_reasoning_field_can_be_renamed(make_api, stream: bool) -> None:
    service = ScriptedService(lambda _: SCRIPTS["thinking"])
    response = await make_api(service, reasoning_field="reasoning").chat(stream=stream)
    assert '"reasoning":"hm' in response.text
    assert "reasoning_content" not in response.text


async def test_without_reasoning_its_field_is_absent(api) -> None:
    assert "reasoning" not in (await api.chat()).json()["choices"][0]["message"]


async def test_the_extension_object_is_absent_when_there_is_nothing_to_say(api) -> None:
    assert "interlock" not in (await api.chat()).json()
    assert "interlock" not in (await api.chat(stream=True)).text


async def test_the_extension_object_says_what_was_done(make_api) -> None:
    api = make_api(ScriptedService(lambda _: SCRIPTS["cut call"], tools=CHEAP, notes=("budget 10",)))
    assert (await api.chat()).json()["interlock"] == {
        "notes": ["budget 10"],
        "tools": {"constrained": True, "reason": "tool_choice requires a call"},
        "incomplete_tool_calls": [1],
    }


async def test_usage_comes_in_a_stream_only_when_asked_for(api) -> None:
    for options in (None, {}, {"include_usage": False}):
        response = await api.chat(stream=True, stream_options=options)
        assert "usage" not in response.text


async def test_a_stream_is_one_line_per_event_whatever_the_text(make_api) -> None:
    api = make_api(ScriptedService(lambda _: text("a\nb\r\n\n data: [DONE]\n\n")))
    response = await api.chat(stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    assert (await api.folded()).message["content"] == "a\nb\r\n\n data: [DONE]\n\n"


FAULTS = {
    "event": [Failed(error=InterlockError("worker_died", "gone"), usage=USAGE)],
    "error": [InterlockError("worker_died", "gone")],
    "exception": [RuntimeError("secret")],
    "no end": [],
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failure_after_the_first_byte_is_an_error_event_and_done(make_api, fault: str) -> None:
    api = make_api(ScriptedService(lambda _: [TextDelta(text="a"), *FAULTS[fault]]))
    *chunks, error, done = await api.events(stream_options={"include_usage": True})
    assert error["error"]["code"] == ("worker_died" if fault in ("event", "error") else "internal_error")
    assert "secret" not in str(error)
    assert all(choice["finish_reason"] is None for chunk in chunks for choice in chunk["choices"])
    assert done == "[DONE]"
    (generation,) = api.service.generations
    assert generation.num_closes == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failure_before_the_first_byte_has_its_status(make_api, fault: str, stream: bool) -> None:
    api = make_api(ScriptedService(lambda _: FAULTS[fault]))
    response = await api.chat(stream=stream)
    assert response.status_code == 500
    error = response.json()
    assert error["error"]["code"] == ("worker_died" if fault in ("event", "error") else "internal_error")
    assert api.service.generations[0].num_closes == 1


async def test_an_answer_that_cannot_be_written_ends_its_stream_with_an_error(make_api) -> None:
    api = make_api(ScriptedService(lambda _: [TextDelta(text="a"), ToolCallEnd(index=7), *finish()]))
    *_, error, done = await api.events()
    assert (error["error"]["code"], done) == ("internal_error", "[DONE]")
    assert (await api.chat()).status_code == 500
    assert [generation.num_closes for generation in api.service.generations] == [1, 1]


async def test_outcomes_are_counted_once_each(make_api) -> None:
    service = ScriptedService()
    api = make_api(service)
    await api.chat()
    await api.chat(stream=True)
    await api.chat(echo=True)
    service.answer = lambda _: [TextDelta(text="a"), *FAULTS["event"]]
    await api.chat(stream=True)
    samples = {
        sample.labels["outcome"]: sample.value
        for metric in api.metrics.requests.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
    assert samples == {"ok": 2, "unsupported_parameter": 1, "worker_died": 1}
