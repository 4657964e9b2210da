"""How many threads a pass may use. One more than there are free cores turns a pass of 9 ms into one of 1,500 ms."""

from __future__ import annotations

import math
import os
from pathlib import Path

import psutil

_CGROUP_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def default_threads(sharers: int = 1) -> int:
    """Physical cores, within this process's CPU affinity and its container's quota, for each of ``sharers`` processes;
    at least 1."""
    limits = [psutil.cpu_count(logical=False) or 1]
    if hasattr(os, "sched_getaffinity"):
        limits.append(len(os.sched_getaffinity(0)))
    quota = _cgroup_quota(_CGROUP_CPU_MAX)
    if quota is not None:
        limits.append(quota)
    return max(1, min(limits) // sharers)


def _cgroup_quota(path: Path) -> int | None:
    """CPUs that a container may use in total, rounded up; ``None`` for no limit (cgroup v2: ``quota period``)."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return None if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError):
        return None
