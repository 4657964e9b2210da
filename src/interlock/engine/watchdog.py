"""Knowing that a worker has hung."""

from __future__ import annotations

from interlock.core.engine import EngineStats


class Watchdog:
    """A worker makes progress while it answers and either has nothing to run or has computed a step since it answered
    last. One that made none for ``hang_s`` seconds has hung.

    now: seconds, as in the methods.
    """

    def __init__(self, hang_s: float, now: float) -> None:
        self._hang_s = hang_s
        self._progress_at = now
        self._num_steps = -1

    @property
    def interval_s(self) -> float:
        """Time between two questions to the worker, and for the answer to one."""
        return self._hang_s / 8

    def not_watching(self, now: float) -> None:
        """The worker is not expected to answer now."""
        self._progress_at = now

    def saw(self, stats: EngineStats, now: float) -> None:
        """The worker has answered."""
        if stats.num_running == 0 or stats.num_steps != self._num_steps:
            self._progress_at = now
        self._num_steps = stats.num_steps

    def has_hung(self, now: float) -> bool:
        """It is time to end the worker."""
        return now - self._progress_at >= self._hang_s
