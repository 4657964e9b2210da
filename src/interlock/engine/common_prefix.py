"""How many tokens two lists begin with in common."""

from __future__ import annotations

from collections.abc import Sequence

_SCAN = 64
"""Tokens compared at first: most pairs differ early or not at all."""


def common_prefix(left: Sequence[int], right: Sequence[int], limit: int) -> int:
    """Tokens that two lists begin with in common, at most ``limit``, which neither is shorter than."""
    if left[: min(_SCAN, limit)] != right[: min(_SCAN, limit)]:
        limit = min(_SCAN, limit) - 1
    low = 0  # in common, as far as is known
    while low < limit:
        middle = (low + limit + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            limit = middle - 1
    return low
