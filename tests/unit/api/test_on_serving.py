"""The endpoint on the real service: rules that only both together show. The engine plays a script."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from interlock.errors import InterlockError, Problem

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": [1, "é"]}}\n</tool_call>'
USER = {"role": "user", "content": "Hi"}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}


Post = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
async def post(stack) -> AsyncIterator[Post]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:

        async def send(**fields: Any) -> httpx.Response:
            return await client.post("/v1/chat/completions", json={"model": "m", "messages": [USER], **fields})

        yield send


@pytest.mark.parametrize(
    "choice", ["banana", {}, {"type": "function"}, {"type": "function", "function": {"name": "g"}}]
)
async def test_a_wrong_tool_choice_is_named(post: Post, choice: Any) -> None:
    response = await post(tools=[TOOL], tool_choice=choice)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "tool_choice"


async def test_choosing_no_tool_needs_no_tools(post: Post) -> None:
    assert (await post(tool_choice="none")).status_code == 200
    for choice in ("auto", "required"):
        assert (await post(tool_choice=choice)).json()["error"]["param"] == "tool_choice"


CALL_MESSAGE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}] * 2,
}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "tool", "content": "x"}, USER]}, "messages[0].tool_call_id"),
        ({"messages": [USER, CALL_MESSAGE, USER]}, "messages[1].tool_calls[1].id"),
        ({"messages": [{**CALL_MESSAGE, "role": "user", "content": "x"}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant"}, USER]}, "messages[0].content"),
        ({"tools": []}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools[1].function.name"),
        (
            {"tools": [TOOL], "messages": [{"role": "developer", "tools": [TOOL]}, USER]},
            "messages[0].tools[0].function.name",
        ),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "x" * 300}}]}, "tools[0].function.name"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"logit_bias": {"100000": 1}}, "logit_bias"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"regex": ""}}, "structured_outputs.regex"),
    ],
)
async def test_what_a_conversation_or_a_parameter_breaks_is_named(post: Post, fields: dict, param: str) -> None:
    response = await post(**fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] in (
        param,
        "max_completion_tokens" if param == "max_tokens" else param,
    )


async def test_a_prompt_that_does_not_fit_is_refused(post: Post) -> None:
    response = await post(messages=[{"role": "user", "content": "x" * 3000}], stream=True)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_schema_that_cannot_be_enforced_is_refused_before_the_first_byte(
    stack, post: Post, stream: bool
) -> None:
    problem = Problem(reason="not supported", keyword="contains", pointer="/contains")
    stack.pool.refusal = InterlockError("invalid_schema", "contains is not supported", problems=(problem,))
    response = await post(response_format=SCHEMA, stream=stream)
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"]["problems"][0]["pointer"] == "/contains"
    assert stack.engine.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": SCHEMA},
        {"structured_outputs": {"choice": ["a"]}},
        {"structured_outputs": {"json": {"type": "object"}}},
    ],
)
async def test_a_format_puts_nothing_into_the_prompt(stack, post: Post, fields: dict) -> None:
    await post()
    assert (await post(**fields)).status_code == 200
    free, held = stack.engine.requests
    assert held.prompt_ids == free.prompt_ids
    assert (free.constraint, held.constraint is None) == (None, False)


async def test_a_call_is_an_openai_call(stack, post: Post) -> None:
    stack.text = CALL
    choice = (await post(tools=[TOOL])).json()["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert call["id"].startswith("call_")
    assert json.loads(call["function"]["arguments"]) == {"a": [1, "é"]}


async def test_no_calls_come_out_when_none_were_wanted(stack, post: Post) -> None:
    stack.text = CALL
    choice = (await post(tools=[TOOL], tool_choice="none")).json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]


async def test_a_call_cut_at_any_length_is_never_presented_as_whole(stack, post: Post, fold) -> None:
    stack.text = CALL
    num_tokens = len(stack.tokenizer.encode(CALL))
    for max_tokens in range(1, num_tokens + 1):
        body = (await post(tools=[TOOL], max_tokens=max_tokens)).json()
        choice = body["choices"][0]
        calls = choice["message"].get("tool_calls", [])
        streamed = fold((await post(tools=[TOOL], max_tokens=max_tokens, stream=True)).text)
        for call in (*calls, *streamed.message.get("tool_calls", ())):
            call["id"] = "id"
        assert streamed == (choice["message"], choice["finish_reason"], body.get("interlock"))
        if max_tokens < num_tokens:
            assert choice["finish_reason"] == "length"
        cut = body.get("interlock", {}).get("incomplete_tool_calls", [])
        whole = [json.loads(call["function"]["arguments"]) for i, call in enumerate(calls) if i not in cut]
        assert whole in ([], [{"a": [1, "é"]}])


async def test_not_ready_is_503_with_a_time_to_come_back(new_stack) -> None:
    stack = new_stack()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:
        response = await client.post("/v1/chat/completions", json={"model": "m", "messages": [USER]})
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert (await client.get("/health")).json() == {"status": "unavailable", "phase": "starting"}


@pytest.mark.parametrize("kind", [None, 5, {}, [], ["string"], "string"])
async def test_parameters_that_are_no_object_are_refused(post: Post, kind: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": kind}, "strict": True}}
    response = await post(tools=[tool])
    assert response.status_code == 400
    assert response.json()["error"]["problems"][0]["tool"] == "f"
