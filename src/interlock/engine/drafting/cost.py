"""What a step costs on this machine, learnt from the steps."""

from __future__ import annotations

import numpy as np

_MEMORY = 0.98
_PRIOR_WEIGHT = 2.0
_PRIOR = ((1, 1, 1.0), (8, 1, 2.2), (8, 8, 3.0))
"""Tokens, rows, and cost in steps of one token: a CPU's, until something is measured."""
_MAX_TOKENS = 48
_OUTLIER = 4.0


class StepCost:
    """Seconds of a step as a linear function of its tokens and of its rows of logits: least squares in which old steps
    are forgotten. Long steps (prefill) are not looked at, nor those that something else on the machine held up."""

    def __init__(self) -> None:
        self._products = np.zeros((3, 3))
        self._targets = np.zeros(3)
        self._weights: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None
        self._num_outliers = 0

    def observe(self, num_tokens: int, num_rows: int, seconds: float) -> None:
        """A step took ``seconds``."""
        if num_tokens > _MAX_TOKENS or seconds <= 0:
            return
        if self._weights is None:
            unit = seconds / (1 + 0.3 * (num_tokens - 1))
            for tokens, rows, steps in _PRIOR:
                self._add(tokens, rows, steps * unit, _PRIOR_WEIGHT)
        elif seconds > _OUTLIER * self.seconds(num_tokens, num_rows) and self._num_outliers < 8:
            self._num_outliers += 1
            return
        self._num_outliers = 0
        self._products *= _MEMORY
        self._targets *= _MEMORY
        self._add(num_tokens, num_rows, seconds, 1.0)
        ridge = 1e-6 * np.trace(self._products) * np.eye(3)
        self._weights = np.linalg.solve(self._products + ridge, self._targets)

    def seconds(self, num_tokens: int, num_rows: int) -> float:
        """What a step is expected to take. Needs an observation."""
        assert self._weights is not None
        fixed, a_token, a_row = self._weights.tolist()
        return float(max(fixed, 1e-9) + max(a_token, 0.0) * num_tokens + max(a_row, 0.0) * num_rows)

    @property
    def is_known(self) -> bool:
        return self._weights is not None

    def _add(self, num_tokens: int, num_rows: int, seconds: float, weight: float) -> None:
        features = np.array([1.0, num_tokens, num_rows])
        self._products += weight * np.outer(features, features)
        self._targets += weight * seconds * features
