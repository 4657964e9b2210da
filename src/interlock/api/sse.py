"""Server-sent events: encoding, and a response that ends its source when the client goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from interlock.api.disconnect import cancel, disconnected

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def encode(value: Any) -> bytes:
    """One unnamed event with ``value`` as JSON."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


class EventStream(Response):
    """Sends ``events``, each one whole event. ``close`` is awaited exactly once, however the stream ends:
    at its end, when the client disconnects (also before the first byte), or when the server stops it.
    A silence of ``keep_alive_s`` is filled with comments, which clients ignore.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        close: Callable[[], Awaitable[None]],
        keep_alive_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._events = events
        self._close = close
        self._keep_alive_s = keep_alive_s
        self._num_sent = 0
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})})

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        writer = asyncio.ensure_future(self._write(send))
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await self._wait(writer, gone, send)
        finally:
            await cancel(writer, gone)
            await self._events.aclose()
            await self._close()

    async def _wait(self, writer: asyncio.Future[None], gone: asyncio.Future[None], send: Send) -> None:
        while True:
            num_before = self._num_sent
            done, _ = await asyncio.wait(
                {writer, gone}, timeout=self._keep_alive_s, return_when=asyncio.FIRST_COMPLETED
            )
            if writer in done and not isinstance(writer.exception(), OSError):  # OSError: the client went
                writer.result()
            if done:
                return
            if self._num_sent == num_before:
                await _send_body(send, KEEP_ALIVE, more=True)

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for event in self._events:
            await _send_body(send, event, more=True)
            self._num_sent += 1
        await _send_body(send, b"", more=False)


async def _send_body(send: Send, body: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
