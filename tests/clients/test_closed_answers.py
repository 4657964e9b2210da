"""Answers that run out of tokens, over HTTP on the embedded model: closed so that they can be read, and told as cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.clients.asking import TOOLS, ask, json_schema, post

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {
        "story": {"type": "string", "minLength": 60},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
    },
    "required": ["story", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def url(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=4, context_tokens=1024) as url:
        yield url


def _answer(url: str, body: dict[str, Any]) -> tuple[str, str]:
    """Text and reason of the end."""
    response = post(url, body)
    assert response.status_code == 200, response.text
    if not body.get("stream"):
        choice = response.json()["choices"][0]
        return choice["message"]["content"] or "", choice["finish_reason"]
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return text, next(choice["finish_reason"] for choice in reversed(choices) if choice["finish_reason"])


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_without_room_for_its_story_is_closed_and_told_as_cut(url: str, stream: bool) -> None:
    body = ask("Tell a story.", response_format=json_schema(SCHEMA), temperature=0)
    reasons = set()
    for max_tokens in (44, 60, 80):
        text, reason = _answer(url, {**body, "max_tokens": max_tokens, "stream": stream})
        jsonschema.validate(json.loads(text), SCHEMA)
        reasons.add(reason)
    assert "length" in reasons


def test_what_is_not_to_be_closed_is_cut_off(url: str) -> None:
    body = ask("Tell a story.", max_tokens=20, response_format=json_schema(SCHEMA), temperature=0)
    text, reason = _answer(url, {**body, "interlock": {"close_on_length": "off"}})
    assert reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


def test_a_call_is_closed_where_that_is_asked_for(url: str) -> None:
    body = ask("Mail Bob a long letter.", tools=TOOLS, tool_choice="required", temperature=0)
    for max_tokens in range(48, 120, 12):
        answer = post(url, {**body, "max_tokens": max_tokens, "interlock": {"close_on_length": "all"}}).json()
        for call in answer["choices"][0]["message"]["tool_calls"]:
            json.loads(call["function"]["arguments"])
