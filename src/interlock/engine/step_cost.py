"""What a step costs on this machine, learnt from the steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from interlock.runners.parts import parts

Features = NDArray[np.float64]

_MEMORY = 0.98
_USUAL = np.array([0.6, 0.35, 0.27, 0.08])
"""Cost of a part, of its having several tokens (other kernels), of a token and of a row of logits, in steps of one token:
a CPU's, where nothing else is known."""
_PRIOR_WEIGHT = 1.0
_PRIOR_AT = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 2.0, 1.0], [1.0, 1.0, 8.0, 8.0], [1.0, 1.0, 32.0, 1.0]])
_PRIOR_USUAL = _PRIOR_AT @ _USUAL
_PRIOR_PRODUCTS = _PRIOR_WEIGHT * (_PRIOR_AT / _PRIOR_USUAL[:, None] ** 2).T @ _PRIOR_AT
_PRIOR_TARGETS = _PRIOR_WEIGHT * (_PRIOR_AT / _PRIOR_USUAL[:, None]).sum(axis=0)
_OUTLIER = 4.0
_MAX_OUTLIERS = 8
_MAX_UNREAD = 64


class StepCost:
    """Seconds of a step as a linear function of its parts, tokens and rows of logits: least squares of relative errors in
    which old steps are forgotten, but never what is usual. Steps that something else on the machine held up are not
    looked at, unless they keep coming. Nothing is computed until a cost is asked for: most steps have nothing to decide.

    max_part_tokens: as in ``RunnerInfo``.
    """

    def __init__(self, max_part_tokens: int = 0) -> None:
        self.max_part_tokens = max_part_tokens
        self._products = np.zeros((4, 4))
        self._targets = np.zeros(4)
        self._unit = 0.0  # seconds of a step of one token
        self._weights = np.zeros(4)
        self._num_outliers = 0
        self._unread: deque[tuple[Mapping[int, int], int, float]] = deque(maxlen=_MAX_UNREAD)

    @property
    def is_known(self) -> bool:
        """Whether there was an observation."""
        return bool(self._unread) or self._unit > 0

    def observe(self, sizes: Mapping[int, int], num_rows: int, seconds: float) -> None:
        """A step over ``sizes`` tokens of each slot took ``seconds``."""
        if seconds > 0:
            self._unread.append((sizes, num_rows, seconds))

    def seconds(self, sizes: Mapping[int, int], num_rows: int) -> float:
        """What a step is expected to take; 0 where nothing is known."""
        if self._unread:
            self._read()
        return self._seconds(self._features(sizes, num_rows))

    def _read(self) -> None:
        """Take in what was observed since the last time."""
        for sizes, num_rows, seconds in self._unread:
            is_first = not self._unit
            self._learn(self._features(sizes, num_rows), seconds)
            if is_first:  # what follows is measured by it
                self._solve()
        self._unread.clear()
        self._solve()

    def _learn(self, features: Features, seconds: float) -> None:
        if self._unit and seconds > _OUTLIER * self._seconds(features):
            self._num_outliers += 1
            if self._num_outliers < _MAX_OUTLIERS:
                return
        self._num_outliers = 0
        usual = float(features @ _USUAL)
        self._unit += (1 - _MEMORY if self._unit else 1.0) * (seconds / usual - self._unit)
        features = features / usual
        self._products = _MEMORY * self._products + np.outer(features, features)
        self._targets = _MEMORY * self._targets + seconds / usual * features

    def _seconds(self, features: Features) -> float:
        return max(float(features @ self._weights), 0.1 * self._unit)

    def _features(self, sizes: Mapping[int, int], num_rows: int) -> Features:
        num_parts = num_several = num_tokens = 0
        for part in parts(sizes, self.max_part_tokens):
            num_parts += 1
            num_several += part.num_tokens > 1
            num_tokens += part.num_tokens
        return np.array([num_parts, num_several, num_tokens, num_rows], dtype=np.float64)

    def _solve(self) -> None:
        products = self._products + _PRIOR_PRODUCTS
        targets = self._targets + self._unit * _PRIOR_TARGETS
        wanted = list(range(len(targets)))
        while True:  # nothing takes less than no time, whatever the noise says
            weights = np.linalg.solve(products[np.ix_(wanted, wanted)], targets[wanted])
            if weights.min() >= 0:
                break
            del wanted[int(weights.argmin())]
        self._weights = np.zeros(len(targets))
        self._weights[wanted] = weights
