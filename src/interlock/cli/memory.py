"""``--prompt-cache-ram``, and what it is where nobody says."""

from __future__ import annotations

from pathlib import Path

import click
import psutil

_MIB = 2**20
_MOST_BYTES = 8192 * _MIB
_SHARE = 8
_CGROUP_MEMORY_MAX = Path("/sys/fs/cgroup/memory.max")


def prompt_cache_bytes(_context: click.Context, _option: click.Parameter, mebibytes: int | None) -> int:
    """The option's value in bytes; without one an eighth of the memory of this machine or container, at most 8 GiB."""
    if mebibytes is not None:
        return mebibytes * _MIB
    return min(_MOST_BYTES, _memory_bytes(_CGROUP_MEMORY_MAX) // _SHARE)


def _memory_bytes(limit: Path) -> int:
    total = int(psutil.virtual_memory().total)
    try:
        return min(total, int(limit.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no container, or one without a limit: "max"
        return total
