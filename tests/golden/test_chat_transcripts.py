"""What goes over the wire for a chat completion, byte for byte, ids and times made equal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.api.app import build_app
from interlock.api.scripted import USAGE, Script, ScriptedService, call, finish, text, thinking
from interlock.config import HttpConfig
from interlock.core.events import Failed, TextDelta
from interlock.core.tools import ToolContext
from interlock.errors import InterlockError, Problem
from interlock.metrics import Metrics

PATH = "/v1/chat/completions"
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
REQUIRED = ToolContext(constrained=True, constrained_reason="tool_choice requires a call")
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
async def test_transcript(name: str, golden: Callable[[Path, str], None]) -> None:
    fields, answer = CASES[name]
    script = answer if callable(answer) else lambda _: answer
    constrained = REQUIRED if fields.get("tool_choice") == "required" else None
    service = ScriptedService(script, tools=constrained)
    app = build_app(service, HttpConfig(), Metrics(), health=lambda: service.phase, stats=service.stats)
    body = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}], **fields}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        response = await client.post(PATH, json=body)
    golden(Path("chat") / f"{name}.txt", transcript(body, response))


def transcript(body: dict[str, Any], response: httpx.Response) -> str:
    headers = "".join(
        f"{key}: {value}\n" for key, value in sorted(response.headers.items()) if key not in ("content-length",)
    )
    text = (
        f"POST {PATH}\n{json.dumps(body, ensure_ascii=False)}\n\n"
        f"{response.status_code}\n{headers}\n{response.content.decode()}\n"
    )
    text = re.sub(r"chatcmpl-[0-9a-f]{32}", "chatcmpl-ID", text)
    text = re.sub(r"req_[0-9a-f]{32}", "req_ID", text)
    return re.sub(r'"created":\d+', '"created":0', text)
