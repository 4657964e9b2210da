"""The syntax tree of regular languages. Trees are built by the functions of ``lang``, never directly."""

from __future__ import annotations

from interlock.constraints.schema.text.chars import Ranges


class Lang:
    """Base of all nodes. nullable: the empty string is in it. plain: no ``And`` or ``Not`` inside."""

    __slots__ = ("_hash", "key", "nullable", "plain", "size")

    def __init__(self, key: tuple[object, ...], *, nullable: bool, plain: bool, size: int) -> None:
        self.key = key
        self._hash = 0  # not known yet
        self.nullable = nullable
        self.plain = plain
        self.size = size

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = hash((type(self).__name__, self.key))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Lang)
            and type(self) is type(other)
            and hash(self) == hash(other)
            and self.key == other.key
        )

    def __repr__(self) -> str:
        """The same text in every process, so that it can give an order."""
        return f"{type(self).__name__}({', '.join(map(_shown, self.key))})"


def _shown(part: object) -> str:
    return f"{{{', '.join(sorted(map(repr, part)))}}}" if isinstance(part, frozenset) else repr(part)


class Words(Lang):
    """A finite set of strings."""

    __slots__ = ("words",)

    def __init__(self, words: frozenset[str]) -> None:
        super().__init__(
            (words,), nullable="" in words, plain=True, size=1 + sum(map(len, words)) if len(words) < 64 else 64
        )
        self.words = words


class Chars(Lang):
    """One character of a class with at least two members."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: Ranges) -> None:
        super().__init__((ranges,), nullable=False, plain=True, size=1)
        self.ranges = ranges


class Cat(Lang):
    """``items`` one after the other."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Lang, ...]) -> None:
        super().__init__(
            items,
            nullable=all(item.nullable for item in items),
            plain=all(item.plain for item in items),
            size=1 + sum(item.size for item in items),
        )
        self.items = items


class Alt(Lang):
    """One of ``items``."""

    __slots__ = ("items",)

    def __init__(self, items: frozenset[Lang]) -> None:
        super().__init__(
            (items,),
            nullable=any(item.nullable for item in items),
            plain=all(item.plain for item in items),
            size=1 + sum(item.size for item in items),
        )
        self.items = items


class And(Lang):
    """All of ``items`` at once."""

    __slots__ = ("items",)

    def __init__(self, items: frozenset[Lang]) -> None:
        super().__init__(
            (items,),
            nullable=all(item.nullable for item in items),
            plain=False,
            size=1 + sum(item.size for item in items),
        )
        self.items = items


class Not(Lang):
    """Every string that is not in ``item``."""

    __slots__ = ("item",)

    def __init__(self, item: Lang) -> None:
        super().__init__((item,), nullable=not item.nullable, plain=False, size=1 + item.size)
        self.item = item


class Repeat(Lang):
    """``item`` at least ``low`` and at most ``high`` times (``None``: no limit)."""

    __slots__ = ("high", "item", "low")

    def __init__(self, item: Lang, low: int, high: int | None) -> None:
        super().__init__(
            (item, low, high), nullable=low == 0 or item.nullable, plain=item.plain, size=1 + item.size
        )
        self.item = item
        self.low = low
        self.high = high
