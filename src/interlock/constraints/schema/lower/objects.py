"""Object shapes to rules: which keys there are, which policy applies, and which form of rules will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from interlock.constraints.schema.algebra import presence
from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.objects import Cell, ObjectShape, cells, with_presence
from interlock.constraints.schema.algebra.presence import Presence, Term
from interlock.constraints.schema.graph import Value
from interlock.constraints.schema.lower.guarding import GuardRecorder
from interlock.constraints.schema.lower.object_chain import write_chain
from interlock.constraints.schema.lower.object_keys import Keys, Pairs
from interlock.constraints.schema.lower.object_set import write_set
from interlock.constraints.schema.lower.plenty import are_many
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.text.finite import words
from interlock.constraints.schema.text.growth import always_grows
from interlock.constraints.schema.text.nodes import Lang, Words

_MAX_LISTED_KEYS = 256  # a cell of keys that are told one by one becomes named keys up to this many
_MAX_FOUND_KEYS = 16  # and one of few keys: all of them may have come, and then no way is left behind a comma


class ObjectLowering:
    def __init__(
        self,
        algebra: Algebra,
        writer: Writer,
        syntax: ArgumentSyntax,
        options: SchemaOptions,
        symbol: Callable[[Value], str],
        recorder: GuardRecorder,
        pairs: Pairs | None = None,
    ) -> None:
        """pairs: how a key and its value are written, where that is not ``key separator value``."""
        self._algebra = algebra
        self._writer = writer
        self._options = options
        self._pair = pairs or Pairs(writer, syntax, symbol)
        self._syntax = syntax
        self._recorder = recorder

    def lower(self, shapes: Iterable[ObjectShape]) -> list[str]:
        """Rules whose alternatives make up the inhabited shapes of one value (see ``Algebra.objects``). What is possible with
        undeclared keys alone is not written where the policy for these leaves something else. Raises ``RefusedError``."""
        cases = [self._keys(shape, term) for shape in shapes for term in self._cases(shape, shape.presence)]
        wanted = self._written(keys for keys, is_wanted in cases if is_wanted)
        return wanted or self._written(keys for keys, is_wanted in cases if not is_wanted)

    def _written(self, cases: Iterable[Keys]) -> list[str]:
        return [rule for rule in map(self._write, cases) if rule]  # a policy may leave nothing of a case

    def _cases(self, shape: ObjectShape, held: Presence) -> list[Presence]:
        """Counts and alternatives of names do not mix in one rule: then each alternative is a case."""
        unit = held.unit
        mixed = any(term.low or term.high is not None for factor in held.factors for term in factor)
        if not held.factors or not (mixed or unit.low > len(unit.need) or unit.high is not None):
            return [held]
        expanded = presence.terms(held)
        if expanded is None:
            raise _too_many()
        found = [self._algebra.usable(replace(shape, presence=Presence(term))) for term in expanded]
        return [item for item in found if item is not None]

    def _keys(self, shape: ObjectShape, held: Presence) -> tuple[Keys, bool]:
        """Which keys there are, and whether that is what the policy for undeclared ones wants."""
        settled = with_presence(shape, held).settled()
        alive = [(name, value) for name, value in settled.names
                 if name not in held.unit.forbid and self._algebra.inhabited(value)]  # fmt: skip
        others = [cell for cell in cells(settled) if self._algebra.inhabited(cell.value)]
        is_wanted = True
        if shape.declares and not shape.speaks and not self._options.open_objects:
            closed = self._closed(shape, held, alive, others)
            is_wanted = closed is not None
            alive, others = closed or (alive, others)
        for cell in list(others):
            listed = _listed(cell.keys)
            if listed is not None:
                others.remove(cell)
                alive += [(name, cell.value) for name in listed]
        groups = presence.groups(held)
        if groups is None:
            raise _too_many()
        unit = held.unit
        possible: tuple[tuple[Term, ...], ...] = ()
        if groups or unit.forbid:
            names = {name for name, _ in alive}
            unit = _relevant(unit, names)
            possible = tuple(
                tuple(_relevant(term, names) for term in group if term.need <= names) for group in groups
            )
        exists, choices = sorted(shape.exists, key=repr), sorted(shape.choices, key=lambda item: item.order)
        return Keys(tuple(alive), tuple(others), unit, possible, tuple(exists), tuple(choices)), is_wanted

    def _closed(
        self,
        shape: ObjectShape,
        held: Presence,
        alive: list[tuple[str, Value]],
        others: list[Cell],
    ) -> tuple[list[tuple[str, Value]], list[Cell]] | None:
        """Without undeclared keys; ``None`` if nothing would be left."""
        declared = {name for name, _ in shape.names}
        needed = set(held.unit.need).union(*(term.need for factor in held.factors for term in factor))
        kept = [(name, value) for name, value in alive if name in declared or name in needed]
        listed = [cell for cell in others if cell.declared]
        closed = replace(shape, names=tuple(kept), presence=held)
        dropped = frozenset().union(*(choice.names() for choice in shape.choices)).difference(dict(kept))
        without = presence.meet(held, presence.forbid(dropped)) if dropped else held
        if without is None or self._algebra.usable(with_presence(shape, without)) is None:
            return None
        possible = self._algebra.countable(held, [name for name, _ in kept], listed) and all(
            self._algebra.exists(closed, rule.keys, rule.value, listed, held) for rule in shape.exists
        )
        return (kept, listed) if possible else None

    def _write(self, keys: Keys) -> str:
        counted = keys.unit.low > max(1, len(keys.unit.need)) or bool(keys.exists)
        any_order = self._options.property_order == "any"
        is_open = self._options.guards and bool(keys.others)
        distinct = is_open and (counted or not all(always_grows(cell.keys) for cell in keys.others))
        self._recorder.object(keys, distinct=distinct, once=is_open and not distinct, any_order=any_order)
        few = len(keys.named) + bool(keys.others) < 2 or not keys.named
        if keys.is_simple and (not any_order or few):
            return write_chain(keys, self._writer, self._syntax, self._pair)
        return write_set(
            keys, self._writer, self._syntax, self._pair, self._options, self._algebra, self._recorder
        )


def _listed(keys: Lang) -> list[str] | None:
    """All of them, where they are few."""
    if isinstance(keys, Words):
        return sorted(keys.words) if len(keys.words) <= _MAX_LISTED_KEYS else None
    return None if are_many(keys) else words(keys, _MAX_FOUND_KEYS)


def _relevant(term: Term, names: set[str]) -> Term:
    return Term(term.need, term.forbid & names, term.low, term.high)


def _too_many() -> RefusedError:
    return RefusedError(
        f"more than {presence.MAX_TERMS} alternatives of required keys", keyword="required", too_complex=True
    )
