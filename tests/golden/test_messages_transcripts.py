"""What goes over the wire for Anthropic's messages, byte for byte, ids and times made equal."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.scripted import USAGE, call, finish, text, thinking
from interlock.core.events import Failed, Finished, TextDelta
from interlock.errors import InterlockError

TOOL = {"name": "get_weather", "description": "Weather", "input_schema": {"type": "object"}}
WEATHER = [*thinking("The user", " wants it."), *call("get_weather", ['{"city"', ': "Pa', 'ris"}'])]
ANY = {"tools": [TOOL], "tool_choice": {"type": "any"}}


def refuse(_request: object) -> Any:
    raise InterlockError(
        "invalid_schema", "it cannot be enforced", param="tools[0].function.parameters", hint="drop it"
    )


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({}, text("Hello", " there.")),
    "text_stream": ({"stream": True}, text("Hello", " there.")),
    "call": (ANY, [*WEATHER, *finish()]),
    "call_stream": ({**ANY, "stream": True}, [*WEATHER, *finish()]),
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
    "stop_sequence": (
        {"stop_sequences": ["END"]},
        [TextDelta(text="a"), Finished(reason="stop", usage=USAGE, stop_string="END")],
    ),
    "failure_stream": (
        {"stream": True},
        [TextDelta(text="Hel"), Failed(error=InterlockError("worker_died", "the model worker stopped"))],
    ),
    "refused_schema": ({"tools": [TOOL], "stream": True}, refuse),
    "wrong_field": ({"temperature": "hot"}, text()),
    "overloaded": ({}, [Failed(error=InterlockError("overloaded", "too many requests are waiting"))]),
}


@pytest.mark.parametrize("name", CASES)
async def test_transcript(name: str, record) -> None:
    fields, answer = CASES[name]
    body = {"model": "scripted", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], **fields}
    await record(f"messages/{name}", "/v1/messages", body, answer)
