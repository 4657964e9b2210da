"""The requests in flight: bounded when they enter, counted until the last one has left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client import Gauge

from interlock.errors import InterlockError


class Ticket:
    """One request's place. ``release`` gives it back, once."""

    def __init__(self, requests: InFlight) -> None:
        self._requests: InFlight | None = requests

    def release(self) -> None:
        requests, self._requests = self._requests, None
        if requests is not None:
            requests.leave()


class InFlight:
    """Belongs to one event loop."""

    def __init__(self, limit: int, gauge: Gauge) -> None:
        self._limit = limit
        self._gauge = gauge
        self._empty = asyncio.Event()
        self._empty.set()
        self._closed = False
        self.num_requests = 0
        self.on_change: Callable[[], None] = lambda: None  # called after each

    def enter(self) -> Ticket:
        """Raises ``shutting_down`` once closed, ``overloaded`` at the limit."""
        if self._closed:
            raise InterlockError("shutting_down", "the server is stopping")
        if self.num_requests >= self._limit:
            raise InterlockError(
                "overloaded",
                f"{self.num_requests} requests are being served, which is the limit",
                hint="retry later",
            )
        self._count(+1)
        return Ticket(self)

    def leave(self) -> None:
        """Called by tickets only."""
        self._count(-1)

    def close(self) -> None:
        """Let nobody enter from now on."""
        self._closed = True

    async def drain(self, timeout_s: float) -> bool:
        """Wait for the last one to leave; False when some are left after ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def _count(self, change: int) -> None:
        self.num_requests += change
        self._gauge.inc(change)  # shared by the models of a server
        if self.num_requests:
            self._empty.clear()
        else:
            self._empty.set()
        self.on_change()
