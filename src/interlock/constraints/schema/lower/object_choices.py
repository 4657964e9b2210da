"""Choices in a parametric object rule: a bit for each says that it was made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.objects import Choice
from interlock.constraints.schema.algebra.presence import Term
from interlock.constraints.schema.graph import NEVER, Value, meet
from interlock.constraints.schema.lower import conditions as when
from interlock.constraints.schema.lower.object_keys import Keys
from interlock.constraints.schema.problems import RefusedError

MAX_KINDS = 128  # of values of one key

Kind = tuple[Value, frozenset[int]]  # a part of a key's values, and the choices that it makes


@dataclass(frozen=True, slots=True)
class ChoiceBits:
    """bits: of names, all that choices speak of among them. first: bit of the first choice."""

    keys: Keys
    bits: dict[str, int]
    first: int
    any_order: bool
    algebra: Algebra

    def effect(self, shown: Iterable[int]) -> list[int]:
        """The bits of choices."""
        return [self.first + index for index in shown]

    def kinds(self, name: str, value: Value) -> list[Kind]:
        """The values of a key, told apart by the choices that they make."""
        found: list[Kind] = [(value, frozenset())]
        for kind, makers in self._kinds_of(name).items():
            (literal,) = kind  # see ``objects.choice``
            split: list[Kind] = []
            for part, made in found:
                hit, miss = meet(part, kind), meet(part, frozenset({-literal}))
                split += [(hit, made | makers)] if self._possible(hit) else []
                split += [(miss, made)] if hit != part and self._possible(miss) else []
            found = split
            if len(found) > MAX_KINDS:
                raise RefusedError(
                    f"more than {MAX_KINDS} kinds of values of one key", keyword="oneOf", too_complex=True
                )
        return found

    def _kinds_of(self, name: str) -> dict[Value, frozenset[int]]:
        out: dict[Value, frozenset[int]] = {}
        for index, choice in enumerate(self.keys.choices):
            for other, kind in sorted(choice.pairs, key=lambda pair: sorted(pair[1])):
                if other == name:
                    out[kind] = out.get(kind, frozenset()) | {index}
        return out

    def _possible(self, value: Value) -> bool:
        return value != NEVER and self.algebra.inhabited(value)

    def still_open(self, position: int, made: frozenset[int]) -> str:
        """With the key at ``position`` written, each choice is made or can still be."""
        name = self.keys.named[position][0]
        passed = set() if self.any_order else {other for other, _ in self.keys.named[:position]}
        parts = []
        for index, choice in enumerate(self.keys.choices):
            if index not in made and not choice.names().isdisjoint(passed | {name}):
                parts.append(self._open(index, choice, name, passed))
        return when.all_of(parts)

    def settled(self, name: str | None, made: frozenset[int]) -> list[str]:
        """For each choice that is not made with the key ``name``: it needs no key that nobody asks for."""
        values = {other: value for other, value in self.keys.named if other in self.keys.unit.need}
        out = []
        for index, choice in enumerate(self.keys.choices):
            if index not in made:
                ways = [f"bit_set({self.first + index})", *self._holding(choice, name)]
                ways += self._unwritten(choice, values, {name})
                out.append(when.any_of(ways))
        return out

    def _open(self, index: int, choice: Choice, name: str, passed: set[str]) -> str:
        values = dict(self.keys.named)
        ways = [f"bit_set({self.first + index})"]
        ways += self._unwritten(choice, values, passed | {name})
        for term in self._terms(choice):
            if name not in term.forbid:
                needed = (term.need & passed) - {name}
                ways.append(
                    when.all_of([when.has_none(self._bits(term.forbid)), when.has_all(self._bits(needed))])
                )
        return when.any_of(ways)

    def _unwritten(
        self, choice: Choice, values: dict[str, Value], gone: set[str] | set[str | None]
    ) -> list[str]:
        """A key that can make the choice is not written yet."""
        able = {
            name for name, kind in choice.pairs if name not in gone and self._can_show(values.get(name), kind)
        }
        return [f"bit_clear({self.bits[name]})" for name in sorted(able)]

    def _holding(self, choice: Choice, name: str | None) -> list[str]:
        """A term of the choice holds, also with ``name`` written."""
        return [
            when.all_of([when.has_all(self._bits(term.need - {name})), when.has_none(self._bits(term.forbid))])
            for term in self._terms(choice)
            if name not in term.forbid
        ]

    def _can_show(self, value: Value | None, kind: Value) -> bool:
        return value is not None and self._possible(meet(value, kind))

    def end(self) -> str:
        """Every choice is made."""
        parts = []
        for index, choice in enumerate(self.keys.choices):
            parts.append(when.any_of([f"bit_set({self.first + index})", *self._holding(choice, None)]))
        return when.all_of(parts)

    def made_by_nothing(self) -> bool:
        """The object without keys makes every choice."""
        return all(any(not term.need for term in choice.terms) for choice in self.keys.choices)

    def _terms(self, choice: Choice) -> list[Term]:
        """What they say of keys that there may be."""
        names = {name for name, _ in self.keys.named}
        possible = [term for term in choice.terms if term.need <= names]
        return sorted((Term(term.need, term.forbid & names) for term in possible), key=lambda term: term.order)

    def _bits(self, names: Iterable[str]) -> list[int]:
        return [self.bits[name] for name in names]
