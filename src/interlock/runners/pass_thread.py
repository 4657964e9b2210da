"""The thread that forward passes run on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class PassThread(Generic[T]):
    """Runs one call at a time. Always the same thread, since OpenMP keeps its workers per calling thread.

    The calls drop the GIL while in native code, so the caller goes on meanwhile.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], T], Future[T]] | None] = SimpleQueue()
        self._last: Future[T] = Future()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], T]) -> None:
        """Begin ``call``."""
        self._last = Future()
        self._calls.put((call, self._last))

    def wait(self) -> T:
        """The result of the call that was started, or what it raised."""
        return self._last.result()

    def stop(self) -> None:
        """End the thread after the call in progress."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            call, future = item
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001  handed to the thread that waits
                future.set_exception(error)
