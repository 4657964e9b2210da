"""Requests that other servers were reported to take badly: declarations that vanish, lists without end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

Post = Callable[..., Awaitable[httpx.Response]]
USER = {"role": "user", "content": "Hi"}


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def declares(*names: str, role: str = "system", **fields: Any) -> dict[str, Any]:
    return {"role": role, "tools": [tool(name) for name in names], **fields}


@pytest.fixture
async def post(stack) -> AsyncIterator[Post]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:

        async def send(**fields: Any) -> httpx.Response:
            return await client.post("/v1/chat/completions", json={"model": "m", "messages": [USER], **fields})

        yield send


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [tool("f")], "messages": [declares("f"), USER]}, "messages[0].tools[0].function.name"),
        ({"messages": [declares("f"), declares("g", "f"), USER]}, "messages[1].tools[1].function.name"),
        ({"messages": [declares("x" * 257), USER]}, "messages[0].tools[0].function.name"),
        ({"messages": [declares("a b"), USER]}, "messages[0].tools[0].function.name"),
        ({"messages": [declares("f", role="user", content="Hi")]}, "messages[0].tools"),
        ({"messages": [USER, declares("f", role="assistant", content="Hi"), USER]}, "messages[1].tools"),
        ({"messages": [declares("f", content="Be brief."), USER]}, "messages[0].content"),
    ],
)
async def test_a_wrong_declaration_in_a_message_is_named(post: Post, fields: Any, param: str) -> None:
    response = await post(**fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


async def test_a_declaration_in_a_message_counts_like_one_of_the_request(post: Post, stack) -> None:
    messages = [declares("1st"), USER]  # a name may begin with a digit, as in the API that others copy
    stack.text = '<tool_call>\n{"name": "1st", "arguments": {}}\n</tool_call>'
    (choice,) = (await post(messages=messages)).json()["choices"]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "1st"
    assert (await post(messages=messages, tool_choice="required")).status_code == 200
    assert "1st" in str(stack.pool.specs[-1].tree())
    assert (
        await post(messages=messages, tool_choice={"type": "function", "function": {"name": "2nd"}})
    ).status_code == 400


@pytest.mark.parametrize(
    ("fields", "param", "limit"),
    [
        ({"logit_bias": {str(number): 1 for number in range(100_000)}}, "logit_bias", "1024"),
        ({"bad_words": ["x"] * 100_000}, "bad_words", "256"),
        ({"bad_words": ["x" * 100_000]}, "bad_words", "characters"),
        ({"stop": ["x"] * 100_000}, "stop", ""),
        ({"stop_token_ids": list(range(100_000))}, "stop_token_ids", ""),
    ],
)
async def test_a_list_without_end_is_refused_by_its_limit(
    post: Post, fields: Any, param: str, limit: str
) -> None:
    response = await post(**fields)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == param
    assert limit in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/messages", {"messages": [USER] * 20_000, "max_tokens": 5}, "messages"),
        ("/v1/responses", {"input": [USER] * 20_000}, "input"),
        ("/api/chat", {"messages": [USER] * 20_000}, "messages"),
        ("/v1/completions", {"prompt": ["x"] * 20_000}, "prompt"),
        ("/v1/responses", {"input": "x", "tools": [{"type": "function", "name": "f"}] * 20_000}, "tools"),
        ("/api/chat", {"messages": [USER], "tools": [tool("f")] * 20_000}, "tools"),
    ],
)
async def test_a_conversation_without_end_is_refused_on_every_endpoint(
    stack, path: str, body: dict[str, Any], param: str
) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:
        response = await client.post(path, json={"model": "m", **body})
    assert response.status_code == 400
    told = response.json()
    assert (told if path.startswith("/api/") else told["error"])["param"] == param


async def test_a_body_without_end_is_refused_before_it_is_read(post: Post) -> None:
    schema = {"enum": [f"{number}" + "x" * 1000 for number in range(9000)]}
    response = await post(
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    )
    assert response.status_code == 413


async def test_tools_without_end_do_not_fit_the_context(post: Post) -> None:
    response = await post(tools=[tool(f"f{number}") for number in range(2_000)])
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_a_deferred_tool_can_be_called_once_a_result_has_loaded_it(post: Post, stack) -> None:
    k = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]}
    big = {"type": "function", "defer_loading": True, "function": {"name": "big", "parameters": k}}
    called = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
    turns = [
        USER,
        {"role": "assistant", "tool_calls": called},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_reference", "name": "big"}]},
    ]
    rest = {"tools": [tool("find"), big], "tool_choice": "required"}
    stack.text = '<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call>'
    assert (await post(messages=turns[:1], **rest)).status_code == 200
    first = str(stack.pool.specs[-1].tree())
    assert (await post(messages=turns, **rest)).status_code == 200
    second = str(stack.pool.specs[-1].tree())
    assert "find" in first
    assert "big" not in first
    assert "big" in second
    other = [*turns[:2], {**turns[2], "content": [{"type": "tool_reference", "name": "none"}]}]
    refused = await post(messages=other, **rest)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "messages[2].content")
