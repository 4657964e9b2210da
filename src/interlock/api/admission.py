"""A bound on the requests in flight: above it a request is refused at once instead of piling up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interlock.errors import InterlockError


class Admission:
    """Counts requests on one event loop."""

    def __init__(self, max_concurrent: int) -> None:
        self._max_concurrent = max_concurrent
        self.num_running = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """A place for one request. Raises ``overloaded`` when there is none."""
        if self.num_running >= self._max_concurrent:
            raise InterlockError(
                "overloaded",
                f"{self.num_running} requests are running or waiting, which is the server's limit",
                hint="retry later, or raise the limit of concurrent requests",
            )
        self.num_running += 1
        try:
            yield
        finally:
            self.num_running -= 1
