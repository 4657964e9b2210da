"""What a step costs on this machine, learnt from the steps."""

from __future__ import annotations

import numpy as np

_MEMORY = 0.98
_A_TOKEN, _A_ROW = 0.17, 0.11
"""Cost of one more token and of one more row of logits, in steps of one token: a CPU's, where nothing else is known."""
_PRIOR_WEIGHT = 0.5
_PRIOR_AT = ((1, 1), (8, 1), (8, 8))
_MAX_TOKENS = 48
_OUTLIER = 4.0
_MAX_OUTLIERS = 8


class StepCost:
    """Seconds of a step as a linear function of its tokens and of its rows of logits: least squares in which old steps
    are forgotten, but never what is usual. Long steps (prefill) are not looked at, nor those that something else on the
    machine held up, unless they keep coming."""

    def __init__(self) -> None:
        self._products = np.zeros((3, 3))
        self._targets = np.zeros(3)
        self._unit = 0.0  # seconds of a step of one token
        self._weights = (0.0, 0.0, 0.0)
        self._num_outliers = 0

    @property
    def is_known(self) -> bool:
        """Whether there was an observation."""
        return self._unit > 0

    def observe(self, num_tokens: int, num_rows: int, seconds: float) -> None:
        """A step took ``seconds``."""
        if num_tokens > _MAX_TOKENS or seconds <= 0:
            return
        if self.is_known and seconds > _OUTLIER * self.seconds(num_tokens, num_rows):
            self._num_outliers += 1
            if self._num_outliers < _MAX_OUTLIERS:
                return
        self._num_outliers = 0
        unit = seconds / _usual_steps(num_tokens, num_rows)
        self._unit += (1 - _MEMORY if self.is_known else 1.0) * (unit - self._unit)
        features = np.array([1.0, num_tokens, num_rows])
        self._products = _MEMORY * self._products + np.outer(features, features)
        self._targets = _MEMORY * self._targets + seconds * features
        self._solve()

    def seconds(self, num_tokens: int, num_rows: int) -> float:
        """What a step is expected to take; 0 where nothing is known."""
        fixed, a_token, a_row = self._weights
        return max(fixed + a_token * num_tokens + a_row * num_rows, 0.1 * self._unit)

    def _solve(self) -> None:
        products, targets = self._products.copy(), self._targets.copy()
        for tokens, rows in _PRIOR_AT:
            features = np.array([1.0, tokens, rows])
            products += _PRIOR_WEIGHT * np.outer(features, features)
            targets += _PRIOR_WEIGHT * _usual_steps(tokens, rows) * self._unit * features
        fixed, a_token, a_row = np.linalg.solve(products, targets).tolist()
        self._weights = (fixed, a_token, a_row)


def _usual_steps(num_tokens: int, num_rows: int) -> float:
    return 1 + _A_TOKEN * (num_tokens - 1) + _A_ROW * (num_rows - 1)
