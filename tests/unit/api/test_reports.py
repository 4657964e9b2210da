"""What is told of an answer is in the object ``interlock`` of every dialect, streamed or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import USAGE, call
from interlock.core.engine import Enforcement
from interlock.core.events import Finished, TextDelta, TokenTraced, Validity
from interlock.core.timings import RequestTimings
from interlock.core.trace import TokenTrace
from interlock.errors import Problem

MESSAGES = [{"role": "user", "content": "Hi"}]
UNENFORCED = Problem(reason="look-behind", keyword="pattern", pointer="/pattern", tool="f")
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/completions": {"prompt": "x"},
    "/v1/responses": {"input": "x"},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 9},
    "/api/chat": {"messages": MESSAGES},
    "/api/generate": {"prompt": "x"},
}
TRACED = ("/v1/chat/completions", "/v1/completions")
TRACE = TokenTrace(
    token_id=1,
    source="draft",
    probability=0.25,
    wanted=2,
    wanted_probability=0.5,
    num_allowed=3,
    allowed=((1, 0.25),),
    removed=0.125,
)


def answer(validity: Validity) -> list[Any]:
    return [TextDelta(text="x"), Finished(reason="stop", usage=USAGE, validity=validity)]


def objects(text: str) -> list[Any]:
    lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: {", "{")))
    return [json.loads(line) for line in lines]


def remarks(item: dict[str, Any]) -> dict[str, Any] | None:
    inner = item.get("response")
    return item.get("interlock") or (inner.get("interlock") if isinstance(inner, dict) else None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_it_is_told(api, path: str, stream: bool) -> None:
    api.service.unenforced = (UNENFORCED,)
    api.service.answer = lambda _: answer(Validity(answer=(False,)))
    body = {"model": "scripted", "stream": stream, "interlock": {"schema_mode": "relaxed"}, **BODIES[path]}
    response = await api.client.post(path, json=body)
    assert response.status_code == 200, response.text
    assert api.service.requests[0].json_policy.schema_mode == "relaxed"
    (found,) = [told for item in objects(response.text) if (told := remarks(item))]
    assert found["valid"] is False
    assert found["unenforced"] == [
        {"keyword": "pattern", "pointer": "/pattern", "reason": "look-behind", "tool": "f"}
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_who_enforces_is_told_where_another_engine_does(api, path: str, stream: bool) -> None:
    api.service.answer = lambda _: answer(Validity())
    said = []
    for enforcement in (None, Enforcement(), Enforcement(masks="vllm", guards=None)):
        api.service.enforcement = enforcement
        response = await api.client.post(path, json={"model": "scripted", "stream": stream, **BODIES[path]})
        told = [found for item in objects(response.text) if (found := remarks(item))]
        said.append([found["enforced_by"] for found in told if "enforced_by" in found])
    assert said == [[], [], [{"masks": "vllm", "tokens": "interlock", "guards": None}]]


async def test_each_call_and_each_answer_has_its_own(api) -> None:
    verdicts = iter([Validity(calls=(True,)), Validity(calls=(None,))])
    api.service.answer = lambda _: [
        *call("f", ["{}"]),
        Finished(reason="tool_calls", usage=USAGE, validity=next(verdicts)),
    ]
    body = {"model": "scripted", "n": 2, **BODIES["/v1/chat/completions"]}
    found = (await api.client.post("/v1/chat/completions", json=body)).json()
    assert found["interlock"] == {"unenforced": [], "valid": None}
    assert [choice["interlock"]["valid_tool_calls"] for choice in found["choices"]] == [[True], [None]]


@pytest.mark.parametrize(
    ("parts", "whole"), [((), True), ((True, True), True), ((True, None), None), ((None, False), False)]
)
def test_one_doubt_is_a_doubt_about_all_of_it(parts: tuple[bool | None, ...], whole: bool | None) -> None:
    assert Validity(answer=parts).valid is whole


def reported(_: Any) -> list[Any]:
    return [
        TokenTraced(trace=TRACE, spellings={1: b"x", 2: b"\xff"}),
        TextDelta(text="x"),
        Finished(reason="stop", usage=USAGE, timings=RequestTimings(queue_s=0.5, num_forced=3)),
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_timings_come_with_the_last_object(api, path: str, stream: bool) -> None:
    api.service.answer = lambda request: reported(request)[1:]
    body = {"model": "scripted", "stream": stream, "interlock": {"timings": True}, **BODIES[path]}
    response = await api.client.post(path, json=body)
    assert api.service.requests[0].reports.timings
    (told,) = [told for item in objects(response.text) if (told := remarks(item))]
    assert (told["timings"]["queue_s"], told["timings"]["num_forced"]) == (0.5, 3)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", TRACED)
async def test_a_trace_is_in_the_answer_and_runs_with_a_stream(api, path: str, stream: bool) -> None:
    api.service.answer = reported
    body = {"model": "scripted", "stream": stream, "interlock": {"trace": True}, **BODIES[path]}
    response = await api.client.post(path, json=body)
    told = [told for item in objects(response.text) if (told := remarks(item))]
    assert len(told) == 1 + stream  # a stream tells the timings at its end
    (trace,) = told[0]["trace"]
    assert trace == {
        "id": 1,
        "token": "x",
        "bytes": [120],
        "probability": 0.25,
        "source": "draft",
        "wanted": {"id": 2, "token": "\ufffd", "bytes": [255], "probability": 0.5},
        "num_allowed": 3,
        "allowed": [{"id": 1, "token": "x", "bytes": [120], "probability": 0.25}],
        "removed": 0.125,
    }


@pytest.mark.parametrize("path", sorted(set(BODIES) - set(TRACED)))
async def test_a_trace_is_refused_where_an_answer_has_no_room_for_it(api, path: str) -> None:
    body = {"model": "scripted", "interlock": {"trace": True}, **BODIES[path]}
    response = await api.client.post(path, json=body)
    assert response.status_code == 400
    assert "interlock.trace" in response.text
