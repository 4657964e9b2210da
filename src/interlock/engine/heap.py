"""Memory that a step frees stays with the process."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEPT_BYTES = 64 << 20
_LARGEST_BYTES = 16 << 20


def keep_freed_memory() -> None:
    """Let the C library keep what is freed, up to 64 MiB. A row of logits is larger than what it keeps by itself,
    so arrays of that size are given back to the kernel at the end of each step, and in the next one each of their
    pages is a fault again: up to five times as much as the work on them. Does nothing where there is no glibc."""
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BYTES)
