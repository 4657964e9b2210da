"""Server-sent events: encoding, and a response that ends its source when the client goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from interlock.api.disconnect import cancel, disconnected

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFormat:
    """keep_alive: what a client skips, sent where a stream is silent for long; empty where there is no such."""

    media_type: str
    keep_alive: bytes


SSE = StreamFormat(media_type="text/event-stream", keep_alive=KEEP_ALIVE)
JSON_LINES = StreamFormat(media_type="application/x-ndjson", keep_alive=b"")


def encode(value: Any) -> bytes:
    """One unnamed event with ``value`` as JSON."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def encode_named(name: str, value: Any) -> bytes:
    """One event with a name."""
    return b"event: " + name.encode() + b"\n" + encode(value)


class EventStream(Response):
    """Sends ``events``, each one whole event. ``close`` is awaited exactly once, however the stream ends:
    at its end, when the client disconnects (also before the first byte), or when the server stops it.
    A silence of ``keep_alive_s`` is filled with what clients of the format ignore.
    """

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        close: Callable[[], Awaitable[None]],
        keep_alive_s: float,
        headers: Mapping[str, str] | None = None,
        stream_format: StreamFormat = SSE,
    ) -> None:
        self._events = events
        self._close = close
        self._keep_alive_s = keep_alive_s
        self._keep_alive = stream_format.keep_alive
        self._num_sent = 0
        self.media_type = stream_format.media_type
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
            if self._num_sent == num_before and self._keep_alive:
                await _send_body(send, self._keep_alive, more=True)

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for event in self._events:
            await _send_body(send, event, more=True)
            self._num_sent += 1
        await _send_body(send, b"", more=False)


async def _send_body(send: Send, body: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
