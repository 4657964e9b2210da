"""Objects with a largest number of keys: how much room must be left for what still has to be shown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from interlock.constraints.schema.problems import RefusedError

COUNTER_BITS = 16
MAX_COUNTER = (1 << COUNTER_BITS) - 2
MAX_COUNT = 30
_MAX_EXACT = 4  # more of what is owed is counted one key each

Owed = tuple[int, str]  # number of what must be shown, and when it needs no further key


def cases(owed: list[Owed], together: set[frozenset[int]]) -> Iterator[tuple[int, list[str]]]:
    """(keys that must still fit, conditions under which these are enough). together: what one key can show."""
    most = len(owed) if len(owed) <= _MAX_EXACT else 1
    for size in range(most + 1):
        for left in combinations(owed, size):
            settled = [condition for number, condition in owed if (number, condition) not in left]
            yield _num_keys(frozenset(number for number, _ in left), together), settled
    if most < len(owed):
        yield len(owed), []


def _num_keys(missing: frozenset[int], together: set[frozenset[int]]) -> int:
    """The fewest keys that show all of ``missing``."""
    if not missing:
        return 0
    first = min(missing)
    found = [shown for shown in together if first in shown] or [frozenset({first})]
    return 1 + min(_num_keys(missing - shown, together) for shown in found)


def check_count(total: int, named: int, keyword: str) -> None:
    """``named``: how many of the keys have a bit of their own; each is a case."""
    if named > MAX_COUNT or total > MAX_COUNTER:
        most = MAX_COUNT if named > MAX_COUNT else MAX_COUNTER
        raise RefusedError(f"more than {most} keys to count", keyword=keyword, too_complex=True)
