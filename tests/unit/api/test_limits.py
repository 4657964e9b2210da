from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interlock.config import HttpConfig

CHAT = "/v1/chat/completions"


async def chunks(total: int) -> AsyncIterator[bytes]:
    for _ in range(total // 100):
        yield b" " * 100


async def test_a_body_over_the_limit_is_413_with_and_without_a_length(make_api) -> None:
    api = make_api(http=HttpConfig(max_body_bytes=1000))
    for content in (b" " * 1001, chunks(1100)):
        response = await api.client.post(CHAT, content=content)
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "body_too_large"
    assert (await api.chat()).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"content-type": "application/json"}, 200),
        ({"content-type": "Application/JSON; charset=UTF-8"}, 200),
        ({"content-type": "application/vnd.api+json"}, 200),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"content-encoding": "gzip"}, 415),
    ],
)
async def test_media_types(api, headers: dict[str, str], status: int) -> None:
    body = b'{"model":"scripted","messages":[{"role":"user","content":"Hi"}]}'
    response = await api.client.post(CHAT, content=body, headers=headers)
    assert response.status_code == status
    if status == 415:
        assert response.json()["error"]["code"] == "unsupported_media_type"


async def test_nesting_is_bounded_before_anything_is_parsed(api) -> None:
    body = b'{"model":"scripted","tools":' + b'{"a":[' * 10_000
    response = await api.client.post(CHAT, content=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_json"


async def test_nesting_is_bounded_inside_strings_of_json(api) -> None:
    deep = "[" * 10_000 + "]" * 10_000
    error = await api.error(structured_outputs={"json": deep})
    assert (error["code"], error["param"]) == ("invalid_schema", "structured_outputs.json")
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": deep}}
    error = await api.error(messages=[{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert (error["code"], error["param"]) == (
        "invalid_messages",
        "messages[0].tool_calls[0].function.arguments",
    )


async def test_a_large_body_is_read_too(api) -> None:
    response = await api.chat(messages=[{"role": "user", "content": "x" * 200_000}])
    assert response.status_code == 200
    assert len(api.service.requests[0].messages[0].content) == 200_000
