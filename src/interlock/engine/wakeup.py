"""Waking a poll from another thread or from a signal handler."""

from __future__ import annotations

import os
from contextlib import suppress


class Wakeup:
    """A file descriptor that is readable once ``set`` was called, until ``clear``."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        """Safe from any thread and any signal handler."""
        with suppress(BlockingIOError):  # a full pipe is readable as well
            os.write(self._writer, b"\0")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)
