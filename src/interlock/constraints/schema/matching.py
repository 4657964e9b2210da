"""A different value for each of several places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def matching(slots: Sequence[frozenset[Any]]) -> dict[Any, int] | None:
    """A different value for each slot, by value; ``None`` if there are not enough."""
    taken: dict[Any, int] = {}
    for slot in range(len(slots)):
        if not _placed(slot, slots, taken, set()):
            return None
    return taken


def _placed(slot: int, slots: Sequence[frozenset[Any]], taken: dict[Any, int], tried: set[Any]) -> bool:
    for one in slots[slot]:
        if one not in tried:
            tried.add(one)
            if one not in taken or _placed(taken[one], slots, taken, tried):
                taken[one] = slot
                return True
    return False
