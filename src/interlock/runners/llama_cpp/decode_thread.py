"""The thread that forward passes run on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class DecodeThread:
    """Runs one call at a time. Always the same thread, since OpenMP keeps its workers per calling thread.

    The calls drop the GIL while in the library, so the caller goes on meanwhile.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], int] | None] = SimpleQueue()
        self._results: SimpleQueue[int] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="llama-decode", daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], int]) -> None:
        """Begin ``call``, a library function that returns a status and does not raise."""
        self._calls.put(call)

    def wait(self) -> int:
        """The result of the call that was started."""
        return self._results.get()

    def stop(self) -> None:
        """End the thread after the call in progress."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            self._results.put(call())
