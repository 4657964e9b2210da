"""A set that grows and whose earlier versions stay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
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

    def beginning_with(self, text: bytes) -> Iterator[bytes]:
        """The strings among them whose plainest spelling begins with ``text``."""
        for part in self.parts:
            texts = _strings(part)
            at = bisect_left(texts, text)
            while at < len(texts) and texts[at].startswith(text):
                yield texts[at]
                at += 1

    def add(self, item: Canonical) -> Seen:
        """Also with ``item``, which is not in it yet."""
        parts, new = self.parts, frozenset((item,))
        while parts and len(parts[-1]) <= len(new):
            new |= parts[-1]
            parts = parts[:-1]
        return Seen((*parts, new), self.count + 1)


@lru_cache(1_024)
def _strings(part: frozenset[Canonical]) -> list[bytes]:
    return sorted(one for one in part if isinstance(one, bytes))
