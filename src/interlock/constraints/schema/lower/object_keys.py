"""What the forms of object rules share: the keys of one object, and how a pair is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interlock.constraints.schema.algebra.objects import Cell, Choice, Exists
from interlock.constraints.schema.algebra.presence import Term
from interlock.constraints.schema.graph import Value
from interlock.constraints.schema.lower.syntax import ArgumentSyntax, JsonSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.text import chars, lang
from interlock.constraints.schema.text.alphabet import endings
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Lang, Not, Repeat

_RARE: Final = "\x7f"
_ENDS_RARELY: Final = lang.cat(lang.ANY, lang.words([_RARE]))


@dataclass(slots=True)  # not frozen: see ``graph.Schema``
class Keys:
    """The keys of one object, ready to be written.

    named: (name, value) in declared order, all possible. others: cells of unnamed keys. unit: what must hold of
    names and count. groups: independent disjunctions of the same. exists: needs a key of that kind. choices: of
    named keys alone.
    """

    named: tuple[tuple[str, Value], ...]
    others: tuple[Cell, ...]
    unit: Term
    groups: tuple[tuple[Term, ...], ...]
    exists: tuple[Exists, ...]
    choices: tuple[Choice, ...] = ()

    @property
    def is_simple(self) -> bool:
        """Nothing is asked but the presence of some keys."""
        return not (self.groups or self.exists or self.choices or self.counts)

    @property
    def counts(self) -> bool:
        """The number of keys matters beyond the required ones."""
        total = None if self.others else len(self.named)
        if self.unit.low > len(self.unit.need):
            return True
        return self.unit.high is not None and (total is None or self.unit.high < total)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Key, separator and value in symbols."""

    writer: Writer
    syntax: ArgumentSyntax
    symbol: Callable[[Value], str]

    def named(self, name: str, value: Value) -> str:
        return self.of(lang.words([name]), value)

    def of(self, keys: Lang, value: Value) -> str:
        """The engine's slices know what may begin any text, but not any text without a pattern. So keys of this kind are also
        written as those of them that end in a rare character, where all of these are among them: the language is the same."""
        key = self.writer.terminal(self.syntax.key(keys))
        if isinstance(self.syntax, JsonSyntax) and _is_all_but_patterns(keys):
            key = self.writer.rule(f"{self.writer.terminal(self.syntax.key(_ENDS_RARELY))} | {key}")
        symbol = self.symbol(value)
        # see ``Writer.text``: no blank between what the engine tells apart without one
        return f"{key}{symbol}" if key[-1:] == '"' and _starts_anew(symbol[:1]) else f"{key} {symbol}"


def _starts_anew(char: str) -> bool:
    return char == '"' or char.isupper()


def _is_all_but_patterns(keys: Lang) -> bool:
    """Any key that ends in the rare character, and whatever is in none of some patterns."""
    if not isinstance(keys, And | Not):
        return False
    operands = keys.items if isinstance(keys, And) else (keys,)
    without = [item.item for item in operands if isinstance(item, Not)]
    return (
        len(without) == len(operands)
        and any(map(_repeats, without))
        and not any(chars.contains(endings(item), ord(_RARE)) for item in without)
    )


def _repeats(item: Lang) -> bool:
    if isinstance(item, Cat | Alt | And):
        return any(map(_repeats, item.items))
    return isinstance(item, Repeat) or (isinstance(item, Not) and _repeats(item.item))
