"""Ollama's bodies: what is read, what is refused by name, what is ignored and named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import call, finish
from interlock.core.events import ScoredToken, TokenLogprobs
from interlock.core.request import ReasoningOptions

USER = {"role": "user", "content": "Hi"}


@pytest.fixture
def post(api):
    async def send(path: str = "/api/chat", **fields: Any) -> Any:
        body = {"prompt": "Hi"} if path == "/api/generate" else {"messages": [USER]}
        return await api.client.post(path, json={"model": "scripted", "stream": False, **body, **fields})

    return send


@pytest.mark.parametrize(
    ("think", "expected"),
    [
        (None, ReasoningOptions()),
        (True, ReasoningOptions(enabled=True)),
        (False, ReasoningOptions(enabled=False)),
        ("high", ReasoningOptions(effort="high")),
    ],
)
async def test_think(api, post, think: Any, expected: ReasoningOptions) -> None:
    await post(think=think)
    assert api.service.requests[-1].reasoning == expected


async def test_results_belong_to_the_first_open_call_of_their_tool(api, post) -> None:
    def used(name: str) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": {"n": 1.50}}}

    await post(
        messages=[
            USER,
            {"role": "assistant", "content": "", "tool_calls": [used("f"), used("g"), used("f")]},
            {"role": "tool", "tool_name": "g", "content": "g1"},
            {"role": "tool", "tool_name": "f", "content": "f1"},
            {"role": "tool", "content": "f2"},
        ]
    )
    _, assistant, *results = api.service.requests[-1].messages
    names = {called.id: called.name for called in assistant.tool_calls}
    assert [names[result.tool_call_id] for result in results] == ["g", "f", "f"]
    assert len({result.tool_call_id for result in results}) == 3


@pytest.mark.parametrize("length", [-1, -2])
async def test_as_many_tokens_as_there_is_room_for(api, post, length: int) -> None:
    await post(options={"num_predict": length})
    assert api.service.requests[-1].max_tokens is None


async def test_a_call_that_was_cut_is_not_given_out(api, post) -> None:
    api.service.answer = lambda _: [*call("f", ['{"a'], complete=False), *finish("length")]
    body = (await post()).json()
    assert "tool_calls" not in body["message"]
    assert (body["done_reason"], body["interlock"]) == ("length", {"incomplete_tool_calls": [0]})


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_are_told_apart_by_id_and_by_their_place_in_the_answer(api, post, stream: bool) -> None:
    answer = [*call("f", ['{"a": 1}']), *call("f", ['{"a": 2}'], index=1), *finish()]
    api.service.answer = lambda _: answer
    lines = [json.loads(line) for line in (await post(stream=stream)).text.splitlines()]
    calls = [one for line in lines for one in line["message"].get("tool_calls", ())]
    assert [one["function"]["index"] for one in calls] == [0, 1]
    assert [one["function"]["arguments"] for one in calls] == [{"a": 1}, {"a": 2}]
    assert len({one["id"] for one in calls}) == 2


async def test_durations_are_those_of_the_request(api, post) -> None:
    body = (await post()).json()
    assert (body["prompt_eval_duration"], body["eval_duration"]) == (250_000_000, 1_500_000_000)
    assert body["total_duration"] > 0
    assert "load_duration" not in body


async def test_logprobs(api, post) -> None:
    token = ScoredToken(token_id=1, data=b"a", logprob=-1.0, top=((1, b"a", -1.0),))
    api.service.answer = lambda _: [TokenLogprobs(tokens=(token,)), *finish("stop")]
    (found,) = (await post(logprobs=True, top_logprobs=1)).json()["logprobs"]
    assert (found["token"], found["logprob"], found["top_logprobs"][0]["token"]) == ("a", -1.0, "a")
    assert api.service.requests[-1].sampling.logprobs == 1


async def test_options_of_loading_are_ignored_and_named(post) -> None:
    response = await post(options={"num_ctx": 4096, "mirostat": 0}, keep_alive="5m")
    assert response.headers["x-interlock-ignored"] == "keep_alive, options.num_ctx"


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/api/chat", {"format": "xml"}, "format"),
        ("/api/chat", {"format": 5}, "format"),
        ("/api/chat", {"messages": [{**USER, "images": ["x"]}]}, "messages[0].images"),
        ("/api/chat", {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_name"),
        ("/api/chat", {"options": {"mirostat": 2}}, "options.mirostat"),
        ("/api/chat", {"options": {"stop": [""]}}, "options.stop"),
        ("/api/chat", {"think": "banana"}, "think"),
        ("/api/generate", {"images": ["x"]}, "images"),
        ("/api/generate", {"suffix": "x"}, "suffix"),
        ("/api/generate", {"template": "x"}, "template"),
        ("/api/generate", {"raw": True, "system": "x"}, "system"),
    ],
)
async def test_what_is_wrong_is_named(post, path: str, fields: Any, param: str) -> None:
    response = await post(path, **fields)
    assert (response.status_code, response.json()["param"]) == (400, param)
    assert isinstance(response.json()["error"], str)


@pytest.mark.parametrize(
    ("path", "nothing", "shown"),
    [
        ("/api/generate", {"prompt": ""}, {"response": ""}),
        ("/api/chat", {"messages": []}, {"message": {"role": "assistant", "content": ""}}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_asks_nothing_loads_the_model(
    api, post, path: str, nothing: Any, shown: Any, stream: bool
) -> None:
    response = await post(path, **nothing, stream=stream)
    (line,) = [json.loads(text) for text in response.text.splitlines()]
    assert (line["done"], line["done_reason"]) == (True, "load")
    assert {key: line[key] for key in shown} == shown
    assert api.service.requests[-1].max_tokens == 1
