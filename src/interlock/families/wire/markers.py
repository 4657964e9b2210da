"""Finding markers in text that arrives in pieces, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterable


class MarkerMatcher:
    """A set of marker texts, none of which begins another."""

    __slots__ = ("_heads", "_longest", "_regex")

    def __init__(self, texts: Iterable[str]) -> None:
        markers = sorted(texts, key=len, reverse=True)
        self._regex = re.compile("|".join(map(re.escape, markers))) if markers else None
        self._heads = frozenset(text[:end] for text in markers for end in range(1, len(text)))
        self._longest = len(markers[0]) if markers else 0

    def find(self, text: str, start: int) -> re.Match[str] | None:
        """The first marker at or after ``start``."""
        return self._regex.search(text, start) if self._regex else None

    def plain_end(self, text: str, start: int) -> int:
        """Where the text from ``start``, which holds no marker, stops being safe to give out: from there on
        it may be the beginning of a marker."""
        for at in range(max(start, len(text) - self._longest + 1), len(text)):
            if text[at:] in self._heads:
                return at
        return len(text)


class TrailingSpace:
    """Gives text on, but keeps white space at its end back until it is known what follows."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[str] = []

    def push(self, text: str) -> str:
        """The text that can be given on now."""
        solid = text.rstrip()
        if not solid:
            if text:
                self._held.append(text)
            return ""
        out = self.take() + solid
        if len(solid) < len(text):
            self._held.append(text[len(solid) :])
        return out

    def take(self) -> str:
        """The white space kept back; nothing is kept any more."""
        held = "".join(self._held)
        self._held.clear()
        return held
