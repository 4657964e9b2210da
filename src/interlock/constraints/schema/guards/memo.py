"""What is known about the places in the items of an array."""

from __future__ import annotations

from typing import Any


class Memo:
    """What is known about the places in the items of one array as it is now. until: by place, the number of items up to
    which a way on is known from there, or ``DEAD``. ways: by place inside a string, a longer beginning of it that the
    grammar has: a way on while no earlier item begins with that. doubts: by place, the number of items with which a search
    from there came to its bounds. It says nothing about the document, so all are equal."""

    def __init__(
        self,
        until: dict[Any, int] | None = None,
        ways: dict[Any, bytes] | None = None,
        doubts: dict[Any, int] | None = None,
    ) -> None:
        self.until = until or {}
        self.ways = {} if ways is None else ways
        self.doubts = doubts or {}

    def copy(self) -> Memo:
        return Memo(dict(self.until), self.ways, dict(self.doubts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memo)

    def __hash__(self) -> int:
        return 0
