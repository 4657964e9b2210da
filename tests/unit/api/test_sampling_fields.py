"""Parameters of sampling mean the same on every endpoint, under the same names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from interlock.api.wire import WireSampling

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 64},
    "/api/chat": {"messages": [{"role": "user", "content": "Hi"}], "stream": False},
    "/api/generate": {"prompt": "Hi", "stream": False},
}
SENT: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": -1,
    "min_p": 0.1,
    "typical_p": 0.8,
    "frequency_penalty": 0.25,
    "presence_penalty": -0.5,
    "repetition_penalty": 1.5,
    "logit_bias": {"7": -1},
    "bad_words": ["ab"],
    "allowed_token_ids": [9, 3],
    "min_tokens": 2,
    "ignore_eos": True,
    "stop_token_ids": [5],
    "seed": 11,
    "include_stop_str_in_output": True,
    "skip_special_tokens": False,
}
PATHS = pytest.mark.parametrize("path", BODIES)
Post = Callable[..., Awaitable[httpx.Response]]


def body_of(path: str, stop: Any = None, **fields: Any) -> dict[str, Any]:
    if path.startswith("/api/"):
        options = fields if stop is None else {**fields, "stop": stop}
        return {"model": "m", **BODIES[path], "options": options}
    name = "stop_sequences" if path == "/v1/messages" else "stop"
    return {"model": "m", **BODIES[path], **fields, **({} if stop is None else {name: stop})}


def text_of(path: str, body: Any) -> str:
    match path:
        case "/v1/chat/completions":
            return body["choices"][0]["message"]["content"]
        case "/v1/completions":
            return body["choices"][0]["text"]
        case "/v1/responses":
            return body["output"][0]["content"][0]["text"]
        case "/v1/messages":
            return body["content"][0]["text"]
        case "/api/chat":
            return body["message"]["content"]
    return body["response"]


def message_of(path: str, body: Any) -> str:
    return body["error"] if path.startswith("/api/") else body["error"]["message"]


@pytest.fixture
async def post(stack) -> AsyncIterator[Post]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:

        async def send(path: str, **fields: Any) -> httpx.Response:
            return await client.post(path, json=body_of(path, **fields))

        yield send


def test_all_fields_are_sent_below() -> None:
    assert set(SENT) == set(WireSampling.model_fields)


@PATHS
async def test_every_field_reaches_the_engine(stack, post: Post, path: str) -> None:
    response = await post(path, **SENT)
    assert response.status_code == 200, response.text
    assert "x-interlock-ignored" not in response.headers
    (request,) = stack.engine.requests
    own, sampling, limits = stack.tokenizer.vocabulary.stop_ids, request.sampling, request.limits
    assert {name: getattr(sampling, name) for name in SENT if hasattr(sampling, name)} == {
        **{name: SENT[name] for name in SENT if hasattr(sampling, name)},
        "top_k": 0,
        "logit_bias": ((7, -1.0),),
    }
    assert (limits.min_tokens, limits.allowed) == (2, (3, 9))
    assert limits.banned == (tuple(b"ab"), tuple(b" ab"))
    assert (limits.suppressed, request.stop_ids) == (tuple(sorted(own)), (*own, 5))


WRONG: dict[str, Any] = {
    "typical_p": 0,
    "min_tokens": -1,
    "bad_words": [""],
    "allowed_token_ids": [100_000],
    "stop_token_ids": [-1],
    "logit_bias": {"100000": 1},
    "frequency_penalty": 3,
}


@pytest.mark.parametrize("field", WRONG)
@PATHS
async def test_a_value_out_of_range_is_named_as_the_client_wrote_it(post: Post, path: str, field: str) -> None:
    response = await post(path, **{field: WRONG[field]})
    assert response.status_code == 400, response.text
    assert field in message_of(path, response.json())
    if path in ("/v1/chat/completions", "/v1/completions", "/v1/responses"):
        assert response.json()["error"]["param"] == field


WITHOUT_END: dict[str, Any] = {
    "logit_bias": {str(number): 1 for number in range(100_000)},
    "bad_words": ["x"] * 100_000,
    "stop_token_ids": list(range(100_000)),
    "stop": ["x"] * 100_000,
}


@pytest.mark.parametrize("field", WITHOUT_END)
@PATHS
async def test_a_list_without_end_is_refused_on_every_endpoint(post: Post, path: str, field: str) -> None:
    response = await post(path, **{field: WITHOUT_END[field]})
    assert response.status_code == 400, response.text
    body = response.json()
    param = body["param"] if path.startswith("/api/") else body["error"]["param"]
    written = "stop_sequences" if (path, field) == ("/v1/messages", "stop") else field
    assert param == (f"options.{field}" if path.startswith("/api/") else written)
    assert param in message_of(path, body)


@PATHS
async def test_min_tokens_above_what_is_generated_is_refused(post: Post, path: str) -> None:
    response = await post(path, min_tokens=5000)
    assert response.status_code == 400
    assert "min_tokens is 5000, but at most" in message_of(path, response.json())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "one "),
        ({"include_stop_str_in_output": True}, "one END"),
        ({"min_tokens": 5}, "one END two "),
        ({"min_tokens": 4}, "one "),
    ],
)
@PATHS
async def test_what_a_stop_string_leaves(stack, post: Post, path: str, fields: Any, expected: str) -> None:
    stack.text = "one END two END"
    response = await post(path, stop=["END"], **fields)
    assert text_of(path, response.json()) == expected


@pytest.mark.parametrize(("skip", "expected"), [(None, "ab"), (True, "ab"), (False, "a<|im_start|>b")])
@PATHS
async def test_special_tokens_are_shown_where_they_are_wanted(
    stack, post: Post, path: str, skip: bool | None, expected: str
) -> None:
    stack.text = "a<|im_start|>b"
    response = await post(path, skip_special_tokens=skip)
    assert text_of(path, response.json()) == expected


async def test_ollamas_own_name_for_the_repetition_penalty_is_the_same(stack, post: Post) -> None:
    await post("/api/chat", repeat_penalty=1.25)
    assert stack.engine.requests[0].sampling.repetition_penalty == 1.25
    refused = await post("/api/chat", repeat_penalty=1.25, repetition_penalty=1.5)
    assert refused.status_code == 400
    assert "differ" in refused.json()["error"]
