"""Finding markers in text that arrives in pieces, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterable


class MarkerMatcher:
    """A set of marker texts. Where one begins another, the longer one counts."""

    __slots__ = ("_first", "_longest", "_markers", "_whole")

    def __init__(self, texts: Iterable[str]) -> None:
        self._markers = sorted(texts, key=len, reverse=True)
        self._longest = len(self._markers[0]) if self._markers else 0
        firsts = "".join(sorted({re.escape(text[0]) for text in self._markers}))
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")
        self._whole = re.compile("|".join(map(re.escape, self._markers)) or "(?!)")

    def find(self, text: str, start: int, *, final: bool = False) -> tuple[int, str | None]:
        """Where plain text from ``start`` ends, and the marker that ends it. Without a marker the rest of
        ``text``, which may be empty, is what may become one. final: no text follows."""
        while (first := self._first.search(text, start)) is not None:
            at = first.start()
            if not final and len(text) - at < self._longest and self._may_begin(text[at:]):
                return at, None
            if (match := self._whole.match(text, at)) is not None:
                return at, match[0]
            start = at + 1
        return len(text), None

    def _may_begin(self, rest: str) -> bool:
        """Some marker is longer and begins with ``rest``."""
        return any(len(rest) < len(marker) and marker.startswith(rest) for marker in self._markers)


def may_begin(marker: str, text: str, pos: int) -> bool:
    """``text`` ends before ``marker`` does, and so far they agree."""
    return len(text) - pos < len(marker) and marker.startswith(text[pos:])


def held_back(text: str, start: int, marker: str) -> int:
    """Where the end of ``text`` begins that may be the beginning of ``marker``; its length if there is none."""
    at = max(start, len(text) - len(marker) + 1)
    while (at := text.find(marker[0], at)) >= 0:
        if marker.startswith(text[at:]):
            return at
        at += 1
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
        out = self.take() + solid if self._held else solid
        if len(solid) < len(text):
            self._held.append(text[len(solid) :])
        return out

    def take(self) -> str:
        """The white space kept back; nothing is kept any more."""
        held = "".join(self._held)
        self._held.clear()
        return held
