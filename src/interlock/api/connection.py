"""One HTTP connection within bounds of time: uvicorn itself waits without end for the head of a request."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol


def bounded_connection(head_timeout_s: float) -> type[asyncio.Protocol]:
    """The protocol class for a server whose clients must send the head of a request within ``head_timeout_s``."""

    class BoundedConnection(H11Protocol):
        """From the first byte of a connection, or of a further request on it, to the head's last one."""

        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(cast("asyncio.Transport", transport))
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._forget()

        def _watch(self) -> None:
            # uvicorn's types do not say that there is no cycle before the first request
            cycle = cast("object | None", self.cycle)
            if cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self._waiting is None:
                self._waiting = self.loop.call_later(head_timeout_s, self._give_up)

        def _forget(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

        def _give_up(self) -> None:
            self._waiting = None
            self.transport.close()

    return BoundedConnection
