"""Whatever a client sends, the answer is an answer: never a 500."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.api.app import build_app
from interlock.api.openai.chat.fields import REFUSED
from interlock.api.openai.chat.request import ChatCall, read_chat_call
from interlock.api.openai.chat.wire import WireChatRequest
from interlock.api.scripted import ScriptedService
from interlock.config import HttpConfig
from interlock.errors import InterlockError
from interlock.metrics import Metrics

NAMES = [info.alias or name for name, info in WireChatRequest.model_fields.items()]
INNER = [
    "type",
    "function",
    "name",
    "parameters",
    "schema",
    "json_schema",
    "content",
    "text",
    "tool_calls",
    "id",
    "arguments",
    "tools",
    "regex",
    "json",
    "choice",
    "grammar",
    "syntax",
    "definition",
    "mode",
    "allowed_tools",
    "include_usage",
    "strict",
]
WORDS = [
    "user",
    "system",
    "developer",
    "assistant",
    "tool",
    "function",
    "text",
    "json_schema",
    "json_object",
    "auto",
    "required",
    "none",
    "allowed_tools",
    "lark",
    "f",
    "{}",
    "[]",
    '{"a":1}',
    "image_url",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**63, max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(INNER) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(WORDS)}, optional=dict.fromkeys(INNER, values)), max_size=3
)
functions = st.fixed_dictionaries({"type": st.just("function")}, optional={"function": values})


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Half plausible: the required fields are often right, some others have anything."""
    body = {
        "model": draw(st.just("scripted") | values),
        "messages": draw(messages | st.just([{"role": "user", "content": "Hi"}]) | values),
        "tools": draw(st.lists(functions, max_size=2) | values),
    }
    for name in draw(st.lists(st.sampled_from([*NAMES, *REFUSED, "unknown"]), max_size=5)):
        body[name] = draw(values)
    return body


def read(body: bytes) -> ChatCall | InterlockError:
    try:
        return read_chat_call(body, request_id="r", max_nesting=20)
    except InterlockError as error:
        return error


def check(result: ChatCall | InterlockError) -> None:
    if isinstance(result, InterlockError):
        assert result.entry.status == 400
        assert result.message
        json.dumps(result.param)


@settings(max_examples=120, deadline=None)
@given(bodies())
def test_any_json_object(body: dict[str, Any]) -> None:
    check(read(json.dumps(body).encode()))


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\u0d8n1e.- ', max_size=40).map(str.encode))
def test_any_bytes(body: bytes) -> None:
    check(read(body))


@settings(max_examples=30, deadline=None)
@given(bodies(), st.booleans())
def test_any_json_object_over_http(body: dict[str, Any], stream: bool) -> None:
    service = ScriptedService()
    app = build_app(service, HttpConfig(), Metrics(), health=lambda: service.phase, stats=service.stats)

    async def post() -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return (await client.post("/v1/chat/completions", json={**body, "stream": stream})).status_code

    assert asyncio.run(post()) in (200, 400, 404)
