"""One HTTP connection within bounds of time: uvicorn itself waits without end for the head of a request, and for a
client that takes no more of its answer."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlock import log

_LOG = log.get(__name__)


class BoundedConnection(HttpToolsProtocol):
    """The head of a request must arrive within ``head_timeout_s`` of its first byte, or of the connection's begin, and is read
    up to ``max_head_bytes``. When so
    much of an answer waits that nothing more is written, the client must take something of it within
    ``write_timeout_s``; one that does not loses its connection, and the answer ends like that of a client that left.
    """

    head_timeout_s: float
    write_timeout_s: float
    max_head_bytes: int
    _num_head_bytes = 0
    _is_in_head = True
    _waiting: asyncio.TimerHandle | None = None
    _stalling: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._watch()

    def data_received(self, data: bytes) -> None:
        self._num_head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._num_head_bytes > self.max_head_bytes and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")
        self._watch()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._num_head_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()
        self._forget_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_reader()

    def _watch(self) -> None:
        # uvicorn's types do not say that there is no cycle before the first request
        cycle = cast("object | None", self.cycle)
        if cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _forget(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.close()

    def _watch_reader(self, num_bytes: int) -> None:
        self._stalling = self.loop.call_later(self.write_timeout_s, self._judge_reader, num_bytes)

    def _forget_reader(self) -> None:
        if self._stalling is not None:
            self._stalling.cancel()
            self._stalling = None

    def _judge_reader(self, num_bytes_before: int) -> None:
        """Nothing is written meanwhile, so what waits only becomes less where the client takes it."""
        num_bytes = self.transport.get_write_buffer_size()
        if num_bytes < num_bytes_before:
            self._watch_reader(num_bytes)
            return
        _LOG.warning("a client took nothing of its answer for %g s and is cut off", self.write_timeout_s)
        self._stalling = None
        self.transport.abort()


def bounded_connection(
    *, head_timeout_s: float, write_timeout_s: float, max_head_bytes: int
) -> type[asyncio.Protocol]:
    """The protocol class for a server with these bounds."""
    bounds = {
        "head_timeout_s": head_timeout_s,
        "write_timeout_s": write_timeout_s,
        "max_head_bytes": max_head_bytes,
    }
    return type("Connection", (BoundedConnection,), bounds)
