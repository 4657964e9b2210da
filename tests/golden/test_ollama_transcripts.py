"""What goes over the wire for Ollama's endpoints, byte for byte, ids and times made equal."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.scripted import call, finish, text, thinking
from interlock.core.events import Failed, TextDelta
from interlock.errors import InterlockError

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
WEATHER = [*thinking("hm"), *call("get_weather", ['{"city"', ': "Paris"}']), *finish()]

CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "chat": ("chat", {**CHAT, "stream": False}, text("Hello", " there.")),
    "chat_stream": ("chat", CHAT, text("Hello", " there.")),
    "call": ("chat", {**CHAT, "stream": False}, WEATHER),
    "call_stream": ("chat", CHAT, WEATHER),
    "generate": ("generate", {"prompt": "Hi", "stream": False}, text("Hello")),
    "generate_stream": ("generate", {"prompt": "Hi"}, text("Hel", "lo")),
    "failure_stream": (
        "chat",
        CHAT,
        [TextDelta(text="a"), Failed(error=InterlockError("worker_died", "the model worker stopped"))],
    ),
    "wrong_field": ("chat", {**CHAT, "format": "xml"}, text()),
}


@pytest.mark.parametrize("name", CASES)
async def test_transcript(name: str, record) -> None:
    path, fields, answer = CASES[name]
    await record(f"ollama/{name}", f"/api/{path}", {"model": "scripted", **fields}, answer)
