"""``TokenTrace``: how one output token came about. Made only for requests that ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TokenSource = Literal["sampled", "forced", "draft"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrace:
    """Probabilities are the model's at temperature 1, after bias and penalties and before the mask.

    source: ``forced`` where the mask left one id, ``draft`` for a guess that was right, else ``sampled``.
    probability: of this token. wanted, wanted_probability: the likeliest id without the mask.
    num_allowed: ids in the mask. allowed: the likeliest of them with their probabilities, best first.
    removed: probability that the mask took away, 0 without one.
    """

    token_id: int
    source: TokenSource
    probability: float
    wanted: int
    wanted_probability: float
    num_allowed: int
    allowed: tuple[tuple[int, float], ...]
    removed: float

    @property
    def ids(self) -> frozenset[int]:
        """Every id that is named here."""
        return frozenset((self.token_id, self.wanted, *(token_id for token_id, _ in self.allowed)))
