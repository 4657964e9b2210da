"""Work of native code that recurses deeper than a usual stack is long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from interlock.errors import InterlockError

T = TypeVar("T")

STACK_BYTES = 64 << 20
"""Address space; what is not used takes no memory."""

_starting = threading.Lock()  # the size of a stack is a setting of the whole process


def on_deep_stack(work: Callable[[], T]) -> T:
    """``work()`` in a thread with a stack of ``STACK_BYTES``, waited for. What it raises is raised here. Raises
    ``InterlockError("constraint_too_complex")`` where the process may not have so much address space."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: raised again where it is waited for
            errors.append(error)

    thread = threading.Thread(target=run, name="deep-stack", daemon=True)
    with _starting:
        usual = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        except RuntimeError:
            raise InterlockError(
                "constraint_too_complex", "the grammar is too long for the memory that is left"
            ) from None
        finally:
            threading.stack_size(usual)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
