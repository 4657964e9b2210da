"""What is known of specs: lowered text or refusal, bounded by number and by bytes."""

from __future__ import annotations

from collections import OrderedDict

from interlock.core.constraint import LoweredConstraint
from interlock.errors import InterlockError

Result = LoweredConstraint | InterlockError


class ResultCache:
    """Least recently used goes first."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._results: OrderedDict[str, Result] = OrderedDict()
        self._num_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Estimated bytes held."""
        return self._num_bytes

    def __len__(self) -> int:
        return len(self._results)

    def get(self, key: str) -> Result | None:
        """The result of an earlier job."""
        found = self._results.get(key)
        if found is not None:
            self._results.move_to_end(key)
        return found

    def put(self, key: str, result: Result) -> None:
        """Keep ``result``, unless it alone exceeds the bound."""
        self._drop(key)
        if _size(result) > self._max_bytes:
            return
        self._results[key] = result
        self._num_bytes += _size(result)
        while self._num_bytes > self._max_bytes or len(self._results) > self._max_entries:
            self._drop(next(iter(self._results)))

    def _drop(self, key: str) -> None:
        dropped = self._results.pop(key, None)
        if dropped is not None:
            self._num_bytes -= _size(dropped)


def _size(result: Result) -> int:
    """Bytes of the text, and a fixed part for the objects."""
    if isinstance(result, LoweredConstraint):
        return 500 + len(result.grammar) + len(result.guards) + sum(map(len, result.notes))
    return (
        500
        + len(result.message)
        + sum(200 + len(problem.reason) + len(problem.pointer) for problem in result.problems)
    )
