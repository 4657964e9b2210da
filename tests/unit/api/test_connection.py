"""A connection whose client sends the head of a request too slowly, or too much of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from interlock.api.connection import bounded_connection
from interlock.api.disconnect import disconnected
from interlock.config import HttpConfig

REQUEST = b"GET /version HTTP/1.1\r\nhost: localhost\r\n"
END = b"connection: close\r\n\r\n"
READ_S = 20
BOUNDS: dict[str, Any] = {"head_timeout_s": 20.0, "write_timeout_s": 60.0, "max_head_bytes": 4096}


@asynccontextmanager
async def serving(
    app: Any, *, head_timeout_s: float = 20.0, write_timeout_s: float = 20.0
) -> AsyncIterator[int]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="off",
        http=bounded_connection(
            head_timeout_s=head_timeout_s, write_timeout_s=write_timeout_s, max_head_bytes=4096
        ),
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    yield listener.getsockname()[1]
    server.should_exit = True
    await running
    listener.close()


@pytest.fixture
async def port(make_api, request) -> AsyncIterator[int]:
    app = make_api(http=HttpConfig(max_headers=20, max_header_bytes=4096)).app
    async with serving(app, head_timeout_s=getattr(request, "param", 20.0)) as port:
        yield port


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


async def test_an_answer_that_nobody_reads_ends() -> None:
    ended = asyncio.Event()

    async def endless(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.ensure_future(disconnected(receive))
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 10_000, "more_body": True})
            await asyncio.sleep(0)
        ended.set()

    async with serving(endless, write_timeout_s=0.1) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST + END)
        async with asyncio.timeout(READ_S):
            await ended.wait()
        writer.close()


@pytest.mark.parametrize(
    ("waiting", "is_cut"),
    [([900, 900], True), ([900, 800, 800], True), ([900, 800, 700, 600], False)],
    ids=["takes nothing", "stops taking", "is slow"],
)
def test_who_takes_nothing_of_an_answer_is_cut_off(waiting: list[int], is_cut: bool) -> None:
    timers: list[Callable[[], None]] = []
    loop = Mock(call_later=lambda _s, judge, *facts: timers.append(lambda: judge(*facts)) or Mock())
    connection: Any = bounded_connection(**BOUNDS)(
        uvicorn.Config(Mock()), server_state=ServerState(), app_state={}, _loop=loop
    )
    transport = Mock(get_write_buffer_size=Mock(side_effect=waiting))
    connection.transport, connection.flow = transport, Mock()
    connection.pause_writing()
    for index in range(len(waiting) - 1):
        timers[index]()
    assert transport.abort.called == is_cut


def test_who_has_taken_what_waited_is_watched_no_more() -> None:
    timer = Mock()
    connection: Any = bounded_connection(**BOUNDS)(
        uvicorn.Config(Mock()),
        server_state=ServerState(),
        app_state={},
        _loop=Mock(call_later=lambda *_: timer),
    )
    connection.transport, connection.flow = Mock(get_write_buffer_size=lambda: 900), Mock()
    connection.pause_writing()
    connection.resume_writing()
    timer.cancel.assert_called_once_with()
