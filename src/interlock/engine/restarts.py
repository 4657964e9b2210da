"""When a dead worker is started again."""

from __future__ import annotations

from collections import deque

_MAX_DEATHS = 5
_WINDOW_S = 120.0
_FIRST_DELAY_S = 0.25
_MAX_DELAY_S = 8.0


class RestartPolicy:
    """A first death is followed by a restart at once, later ones by growing delays; too many in a short
    time by none."""

    def __init__(self) -> None:
        self._deaths: deque[float] = deque()

    def delay_s(self, now: float) -> float | None:
        """Count a death at ``now``. Seconds to wait before the restart; ``None``: give up."""
        self._deaths.append(now)
        while self._deaths[0] < now - _WINDOW_S:
            self._deaths.popleft()
        num_recent = len(self._deaths)
        if num_recent > _MAX_DEATHS:
            return None
        return 0.0 if num_recent == 1 else min(_FIRST_DELAY_S * 2 ** (num_recent - 2), _MAX_DELAY_S)
