"""A connection whose client sends the head of a request too slowly, or too much of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn

from interlock.api.connection import bounded_connection
from interlock.config import HttpConfig

REQUEST = b"GET /version HTTP/1.1\r\nhost: localhost\r\n"
END = b"connection: close\r\n\r\n"
READ_S = 20


@pytest.fixture
async def port(make_api, request) -> AsyncIterator[int]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    app = make_api(http=HttpConfig(max_headers=20, max_header_bytes=4096)).app
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="off",
        http=bounded_connection(getattr(request, "param", 20.0)),
        h11_max_incomplete_event_size=4096,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await serving
    listener.close()


async def conversation(port: int, *pieces: bytes) -> bytes:
    """What comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    try:
        async with asyncio.timeout(READ_S):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("port", [0.05], indirect=True)
@pytest.mark.parametrize("sent", [b"", b"GET /ver", REQUEST])
async def test_a_head_that_does_not_come_closes_the_connection(port: int, sent: bytes) -> None:
    assert await conversation(port, sent) == b""


@pytest.mark.parametrize("port", [0.3], indirect=True)
async def test_so_does_half_of_a_second_head_after_an_answer(port: int) -> None:
    answer = await conversation(port, REQUEST + b"\r\n" + REQUEST)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_whole_head_is_answered(port: int) -> None:
    answer = await conversation(port, REQUEST + END)
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"a: b\r\n" * 30 + END, b"431"),
        (b"a: " + b"b" * 9000 + b"\r\n" + END, b"431"),
        (b"a: " + b"b" * 9000, b"400"),  # it is not read to its end
    ],
    ids=["too many", "too long", "endless"],
)
async def test_headers_are_bounded(port: int, headers: bytes, status: bytes) -> None:
    answer = await conversation(port, REQUEST + headers)
    assert answer.startswith(b"HTTP/1.1 " + status)
