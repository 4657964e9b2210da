"""A set that grows and whose earlier versions stay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from interlock.constraints.schema.guards.values import Canonical


class Seen(msgspec.Struct, frozen=True):
    """Parts of falling size; versions share them, so that all of them together take n log n."""

    parts: tuple[frozenset[Canonical], ...] = ()
    count: int = 0

    def __contains__(self, item: Canonical) -> bool:
        return any(item in part for part in self.parts)

    def __iter__(self) -> Iterator[Canonical]:
        return chain.from_iterable(self.parts)

    def add(self, item: Canonical) -> Seen:
        """Also with ``item``, which is not in it yet."""
        parts, new = self.parts, frozenset((item,))
        while parts and len(parts[-1]) <= len(new):
            new |= parts[-1]
            parts = parts[:-1]
        return Seen((*parts, new), self.count + 1)
