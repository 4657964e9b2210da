"""Whatever a client sends to any endpoint, the answer is an answer: never a 500, and always in the path's shape.

Bodies are right ones with one or two parts replaced by anything, on the real service.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from interlock.api.catalog import ENDPOINTS

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
TOOLS = [{"type": "function", "function": FUNCTION}]
FLAT_TOOLS = [{"type": "function", **FUNCTION}, {"type": "custom", "name": "c", "format": {"type": "text"}}]
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = {
    "model": "m",
    "messages": [
        USER,
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
    ],
    "tools": TOOLS,
    "tool_choice": "auto",
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    "logit_bias": {"5": 1},
    "stop": ["x"],
    "stream": False,
    "n": 2,
    "max_tokens": 5,
    "logprobs": True,
    "top_logprobs": 2,
    "chat_template_kwargs": {"enable_thinking": False},
}
MESSAGES = {
    "model": "m",
    "system": [{"type": "text", "text": "s"}],
    "messages": [
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
    ],
    "tools": [{"name": "f", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto"},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    "thinking": {"type": "disabled"},
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/chat/completions/render": CHAT,
    "/v1/completions": {
        "model": "m",
        "prompt": ["a", "b"],
        "max_tokens": 5,
        "logprobs": 1,
        "structured_outputs": {"regex": "a"},
        "stream_options": None,
    },
    "/v1/responses": {
        "model": "m",
        "instructions": "s",
        "input": [
            USER,
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
            {"type": "additional_tools", "role": "developer", "tools": [{**FLAT_TOOLS[0], "name": "g"}]},
        ],
        "tools": FLAT_TOOLS,
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
        "max_output_tokens": 5,
        "metadata": {"a": "b"},
    },
    "/v1/messages": {**MESSAGES, "max_tokens": 5, "stop_sequences": ["x"]},
    "/v1/messages/count_tokens": MESSAGES,
    "/api/chat": {
        "model": "m",
        "messages": [
            USER,
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
            {"role": "tool", "tool_name": "f", "content": "x"},
        ],
        "tools": TOOLS,
        "format": SCHEMA,
        "options": {"num_predict": 5, "stop": ["x"]},
    },
    "/api/generate": {"model": "m", "prompt": "Hi", "format": "json", "options": {"num_predict": 5}},
    "/api/show": {"model": "m"},
    "/v1/check": {
        "model": "m",
        "tools": TOOLS,
        "json_schema": SCHEMA,
        "interlock": {"open_objects": True},
        "instances": [{"a": 1}],
        "documents": {"http://example.com/a": SCHEMA},
    },
    "/tokenize": {"model": "m", "prompt": "Hi"},
    "/detokenize": {"model": "m", "tokens": [1, 2]},
}
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # what fails is short enough to be read
WORDS = [
    "user",
    "tool",
    "auto",
    "json_schema",
    "text",
    "f",
    "m",
    "{}",
    '{"a":1}',
    "\ud800",
    "",
    "custom",
    "grammar",
]
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.integers(2**60, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*WORDS, "type", "name"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(*path, key) for key in keys] + [at for key in keys for at in places(value[key], (*path, key))]


@st.composite
def bodies(draw: st.DrawFn, path: str) -> dict[str, Any]:
    body = copy.deepcopy(BODIES[path])
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.sampled_from(places(body) or [("model",)]))
        target: Any = body
        for key in at[:-1]:
            target = target[key]
        if draw(st.booleans()) or not isinstance(target, dict):
            target[at[-1]] = draw(values)
        else:
            target.pop(at[-1])
            target[draw(st.sampled_from([*WORDS, "extra"]))] = draw(values)
    if draw(st.booleans()):
        body["stream"] = draw(st.booleans())
    return body


def test_every_endpoint_that_reads_a_body_is_here() -> None:
    """The admin API's settings go through ``tests/clients/test_openapi.py``."""
    read = {entry.path for entry in ENDPOINTS if entry.body is not None and entry.group != "Admin"}
    assert set(BODIES) == read


@pytest.mark.parametrize("path", BODIES)
async def test_the_right_body_is_right(stack, path: str) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:
        response = await client.post(path, json=BODIES[path])
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(data=st.data())
def test_any_body(new_stack, path: str, data: st.DataObject) -> None:
    sent = [data.draw(bodies(path)) for _ in range(4)]

    async def post() -> list[httpx.Response]:
        stack = new_stack()
        await stack.service.lifecycle.start()
        transport = httpx.ASGITransport(stack.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            responses = [await client.post(path, content=json.dumps(body)) for body in sent]
        await stack.service.lifecycle.stop()
        return responses

    for body, response in zip(sent, asyncio.run(post()), strict=True):
        assert response.status_code in (200, 400, 404), (body, response.text)
        assert "internal_error" not in response.text, (body, response.text)
        if response.status_code != 200:
            assert "error" in response.json()
