"""What goes over the wire for a chat completion, byte for byte, ids and times made equal."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.scripted import USAGE, Script, call, finish, text, thinking
from interlock.core.events import Failed, TextDelta
from interlock.errors import InterlockError, Problem

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
USAGE_TOO = {"stream": True, "stream_options": {"include_usage": True}}
WEATHER = [*thinking("The user", " wants it."), *call("get_weather", ['{"city"', ': "Pa', 'ris"}'])]
PROBLEM = Problem(
    reason="not supported", keyword="contains", pointer="/properties/a/contains", tool="get_weather"
)
BAD_SCHEMA = InterlockError(
    "invalid_schema",
    "a schema cannot be enforced: contains at /properties/a/contains is not supported",
    param="tools[0].function.parameters",
    problems=(PROBLEM,),
    hint="drop the keyword",
)


def refuse(_request: object) -> Script:
    raise BAD_SCHEMA


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({}, text("Hello", " there.")),
    "text_stream": ({"stream": True}, text("Hello", " there.")),
    "text_stream_usage": ({**USAGE_TOO, "user": "me"}, text("Hello", " wörld\n")),
    "call": ({"tools": [TOOL], "tool_choice": "required"}, [*WEATHER, *finish()]),
    "call_stream": ({"tools": [TOOL], "tool_choice": "required", **USAGE_TOO}, [*WEATHER, *finish()]),
    "two_calls_stream": (
        {"tools": [TOOL], "stream": True},
        [
            TextDelta(text="Two."),
            *call("get_weather", ["{}"]),
            *call("get_weather", ["{", "}"], index=1),
            *finish(),
        ],
    ),
    "cut_call": ({"tools": [TOOL]}, [*call("get_weather", ['{"ci'], complete=False), *finish("length")]),
    "cut_call_stream": (
        {"tools": [TOOL], "stream": True},
        [*call("get_weather", ['{"ci'], complete=False), *finish("length")],
    ),
    "failure_stream": (
        {"stream": True},
        [
            TextDelta(text="Hel"),
            Failed(error=InterlockError("worker_died", "the model worker stopped"), usage=USAGE),
        ],
    ),
    "refused_schema": ({"tools": [TOOL], "stream": True}, refuse),
    "wrong_field": ({"temperature": "hot"}, text()),
    "unsupported_field": ({"guided_json": {"type": "object"}}, text()),
}


@pytest.mark.parametrize("name", CASES)
async def test_transcript(name: str, record) -> None:
    fields, answer = CASES[name]
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}], **fields}
    await record(f"chat/{name}", "/v1/chat/completions", body, answer)
