"""What a validator said of a relaxed answer is in the object ``interlock`` of every dialect, streamed or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import USAGE, call
from interlock.core.events import Finished, TextDelta, Validity
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
