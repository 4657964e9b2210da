"""The thread for what is done beside a forward pass."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Calls = SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]


class SideThread:
    """Runs one call at a time, while its owner computes. The pass stays on the owner's thread: OpenMP keeps its workers per
    calling thread, and a pass that begins or ends by waking another thread waits for a core on a busy machine.

    The thread starts with the first call, and ends with this object.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: _Calls | None = None

    def run(self, work: Callable[[], T], compute: Callable[[], object]) -> T:
        """What ``work`` gives, or raises, on the thread, while ``compute`` runs here. Both have ended then."""
        result: Future[T] = Future()
        self._started().put((work, result))
        try:
            compute()
        finally:
            error = result.exception()
        if error is not None:
            raise error
        return result.result()

    def _started(self) -> _Calls:
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(target=_serve, args=(self._calls,), name=self._name, daemon=True).start()
            weakref.finalize(self, self._calls.put, None)
        return self._calls


def _serve(calls: _Calls) -> None:
    while (item := calls.get()) is not None:
        work, result = item
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            result.set_exception(error)
        del item, work, result  # what a call holds is not kept until the next one
