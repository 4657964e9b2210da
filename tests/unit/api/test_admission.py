"""Too many requests, time limits, priorities and full contexts: the same on every endpoint, in the shape that its clients
read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from interlock.core.engine import EngineRequest
from interlock.errors import InterlockError

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 64},
    "/api/chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "/api/generate": {"prompt": "Hi"},
}
LONG = "x" * 3000  # the context has 2,000 tokens, of a byte each
TOO_LONG: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": LONG}]},
    "/v1/completions": {"prompt": LONG},
    "/v1/responses": {"input": LONG},
    "/v1/messages": {"messages": [{"role": "user", "content": LONG}]},
    "/api/chat": {"messages": [{"role": "user", "content": LONG}]},
    "/api/generate": {"prompt": LONG},
}
MOST_TOKENS = {
    "/v1/chat/completions": "max_completion_tokens",
    "/v1/completions": "max_tokens",
    "/v1/responses": "max_output_tokens",
    "/v1/messages": "max_tokens",
}
PATHS = pytest.mark.parametrize("path", BODIES)
STREAMED = pytest.mark.parametrize("stream", [False, True])


@pytest.fixture
async def client(stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:
        yield client


def body(path: str, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "stream": False, **BODIES[path], **fields}


def refusal(path: str, response: httpx.Response) -> tuple[int, str, str]:
    """Status, type and message, wherever the endpoint has them."""
    found = response.json()
    if path.startswith("/api/"):
        return response.status_code, found["type"], found["error"]
    if path == "/v1/messages":
        assert found["type"] == "error"
    return response.status_code, found["error"]["type"], found["error"]["message"]


def param_of(path: str, response: httpx.Response) -> str:
    found = response.json()
    return found["param"] if path.startswith("/api/") else found["error"]["param"]


def status_of(path: str, status: int, anthropic: int) -> int:
    return anthropic if path == "/v1/messages" else status


@STREAMED
@PATHS
async def test_above_the_limit_a_client_is_told_when_to_come_back(new_stack, path: str, stream: bool) -> None:
    stack = new_stack(max_concurrent=1)
    entered, go = asyncio.Event(), asyncio.Event()

    async def play(_request: EngineRequest) -> AsyncIterator[int]:
        entered.set()
        await go.wait()
        yield stack.tokenizer.vocabulary.stop_ids[0]

    stack.engine._script = play
    await stack.service.lifecycle.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:
        first = asyncio.create_task(client.post(path, json=body(path)))
        await asyncio.wait_for(entered.wait(), 10)
        second = await client.post(path, json=body(path, stream=stream))
        go.set()
        assert (await first).status_code == 200
        assert (await client.post(path, json=body(path))).status_code == 200
    assert refusal(path, second)[:2] == (status_of(path, 429, 529), "overloaded_error")
    assert (second.headers["retry-after"], second.headers["x-should-retry"]) == ("1", "true")
    await stack.service.lifecycle.stop()


@STREAMED
@PATHS
async def test_a_worker_whose_queue_is_full_is_the_same(stack, client, path: str, stream: bool) -> None:
    full = InterlockError("overloaded", "16 requests wait, which is the limit")
    stack.engine._script = lambda _: [full]
    response = await client.post(path, json=body(path, stream=stream))
    assert refusal(path, response) == (status_of(path, 429, 529), "overloaded_error", full.message)
    assert response.headers["retry-after"] == "1"


@STREAMED
@PATHS
async def test_a_time_limit_holds_for_what_comes_before_the_first_byte(
    stack, client, monkeypatch, path: str, stream: bool
) -> None:
    async def never(_request: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(stack.service, "_resolve", never)
    response = await client.post(path, json=body(path, stream=stream, timeout=0.01))
    assert refusal(path, response)[:2] == (status_of(path, 408, 504), "timeout_error")
    assert response.headers["x-should-retry"] == "true"


@PATHS
async def test_what_is_left_of_the_limit_and_the_priority_go_to_the_engine(stack, client, path: str) -> None:
    late = InterlockError("request_timeout", "the request ran past its time limit")
    stack.engine._script = lambda _: [ord("a"), late]
    response = await client.post(path, json=body(path, timeout=7, priority=-3))
    (request,) = stack.engine.requests
    assert 6 < request.deadline_s <= 7
    assert request.priority == -3
    assert refusal(path, response) == (status_of(path, 408, 504), "timeout_error", late.message)


@pytest.mark.parametrize("fields", [{"timeout": 0}, {"timeout": "1"}, {"priority": 1.5}, {"priority": 2**31}])
@PATHS
async def test_limits_and_priorities_that_are_none_are_refused(client, path: str, fields: Any) -> None:
    response = await client.post(path, json=body(path, **fields))
    assert response.status_code == 400
    assert next(iter(fields)) in refusal(path, response)[2]


@STREAMED
@PATHS
async def test_a_prompt_that_does_not_fit_is_refused_with_the_numbers(client, path: str, stream: bool) -> None:
    response = await client.post(path, json=body(path, stream=stream, **TOO_LONG[path]))
    status, kind, message = refusal(path, response)
    assert (status, kind) == (400, "invalid_request_error")
    assert "context has 2000 tokens" in message
    assert "30" in message.split("2000", 1)[1]  # 3,000 and what the template adds
    assert "retry-after" not in response.headers
    assert param_of(path, response) == next(iter(TOO_LONG[path]))


@pytest.mark.parametrize("path", MOST_TOKENS)
async def test_an_answer_that_does_not_fit_is_refused_with_the_numbers(client, path: str) -> None:
    response = await client.post(path, json=body(path, **{MOST_TOKENS[path]: 1999}))
    status, _, message = refusal(path, response)
    assert status == 400
    assert "context has 2000 tokens" in message
    assert "asks for 1999 more" in message
    assert param_of(path, response) == MOST_TOKENS[path]


async def test_the_other_name_of_the_limit_is_named_where_it_was_sent(client) -> None:
    path = "/v1/chat/completions"
    response = await client.post(path, json=body(path, max_tokens=1999))
    assert param_of(path, response) == "max_tokens"


async def test_too_many_alternatives_are_named_as_each_endpoint_calls_them(client) -> None:
    for path, fields, param in (
        ("/v1/chat/completions", {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ("/v1/completions", {"logprobs": 21}, "logprobs"),
        ("/v1/responses", {"top_logprobs": 21}, "top_logprobs"),
        ("/api/chat", {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ):
        response = await client.post(path, json=body(path, **fields))
        assert (response.status_code, param_of(path, response)) == (400, param)
