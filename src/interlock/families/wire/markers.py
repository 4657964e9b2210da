"""Finding markers in text that arrives in pieces, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterable


class MarkerMatcher:
    """A set of marker texts, none of which begins another."""

    __slots__ = ("_regex",)

    def __init__(self, texts: Iterable[str]) -> None:
        markers = sorted(texts)
        heads = sorted({text[:end] for text in markers for end in range(1, len(text))}, reverse=True)
        whole = "|".join(map(re.escape, markers)) or "(?!)"
        partial = "|".join(map(re.escape, heads)) or "(?!)"
        self._regex = re.compile(rf"({whole})|(?:{partial})\Z")

    def find(self, text: str, start: int) -> tuple[int, str | None]:
        """Where plain text from ``start`` ends, and the marker that ends it. Without a marker the rest of
        ``text``, which may be empty, is what may become one."""
        match = self._regex.search(text, start)
        return (match.start(), match[1]) if match else (len(text), None)


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
