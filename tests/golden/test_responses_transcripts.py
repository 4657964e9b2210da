"""What goes over the wire for responses, byte for byte, ids and times made equal."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.scripted import call, finish, text, thinking
from interlock.core.events import Failed, TextDelta
from interlock.errors import InterlockError

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": True}
CUSTOM = {
    "type": "custom",
    "name": "patch",
    "format": {"type": "grammar", "syntax": "regex", "definition": "a+"},
}
WEATHER = [*thinking("The user", " wants it."), *call("get_weather", ['{"city"', ': "Pa', 'ris"}'])]
PATCH = [*call("patch", ['{"inp', 'ut": "a', "\\u00e9\\", 'n"}']), *finish()]


def refuse(_request: object) -> Any:
    raise InterlockError("invalid_schema", "it cannot be enforced", param="tools[0].function.parameters")


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({"instructions": "Be brief."}, text("Hello", " there.")),
    "text_stream": ({"stream": True}, text("Hello", " there.")),
    "call": ({"tools": [TOOL], "tool_choice": "required"}, [*WEATHER, *finish()]),
    "call_stream": ({"tools": [TOOL], "tool_choice": "required", "stream": True}, [*WEATHER, *finish()]),
    "two_calls_stream": (
        {"tools": [TOOL], "stream": True},
        [
            TextDelta(text="Two."),
            *call("get_weather", ["{}"]),
            *call("get_weather", ["{", "}"], index=1),
            *finish(),
        ],
    ),
    "custom": ({"tools": [CUSTOM]}, PATCH),
    "custom_stream": ({"tools": [CUSTOM], "stream": True}, PATCH),
    "cut_call": ({"tools": [TOOL]}, [*call("get_weather", ['{"ci'], complete=False), *finish("length")]),
    "cut_call_stream": (
        {"tools": [TOOL], "stream": True},
        [*call("get_weather", ['{"ci'], complete=False), *finish("length")],
    ),
    "failure_stream": (
        {"stream": True},
        [TextDelta(text="Hel"), Failed(error=InterlockError("worker_died", "the model worker stopped"))],
    ),
    "refused_schema": ({"tools": [TOOL], "stream": True}, refuse),
    "wrong_field": ({"temperature": "hot"}, text()),
}


@pytest.mark.parametrize("name", CASES)
async def test_transcript(name: str, record) -> None:
    fields, answer = CASES[name]
    await record(f"responses/{name}", "/v1/responses", {"model": "scripted", "input": "Hi", **fields}, answer)
