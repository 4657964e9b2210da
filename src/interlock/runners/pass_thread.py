"""The thread that forward passes run on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class PassThread(Generic[T]):
    """Runs one call at a time. Always the same thread, since OpenMP keeps its workers per calling thread.

    The calls drop the GIL while in native code, so the caller goes on meanwhile.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._results: SimpleQueue[Callable[[], T]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], T]) -> None:
        """Begin ``call``."""
        self._calls.put(call)

    def wait(self) -> T:
        """The result of the call that was started, or what it raised."""
        return self._results.get()()

    def stop(self) -> None:
        """End the thread after the call in progress."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            self._results.put(_outcome(call))


def _outcome(call: Callable[[], T]) -> Callable[[], T]:
    try:
        result = call()
    except Exception as error:  # noqa: BLE001  handed to the thread that waits
        return _raiser(error)
    return lambda: result


def _raiser(error: Exception) -> Callable[[], T]:
    def raise_it() -> T:
        raise error

    return raise_it
