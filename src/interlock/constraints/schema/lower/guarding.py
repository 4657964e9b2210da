"""Collect, while a grammar is written, what its guard must watch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interlock.constraints.schema.algebra.arrays import ArrayShape
from interlock.constraints.schema.graph import ANYTHING, NEVER, Value
from interlock.constraints.schema.guards.plan import GuardNode, GuardPlan, Nodes
from interlock.constraints.schema.lower.object_keys import Keys


@dataclass(slots=True)
class _Draft:
    unique: bool = False
    distinct: bool = False
    prefix: list[set[Value]] = field(default_factory=list)
    rest: set[Value] = field(default_factory=set)
    names: dict[str, set[Value]] = field(default_factory=dict)
    others: set[Value] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)


class GuardRecorder:
    """Shapes are recorded under the value they belong to; several shapes of one value are watched together."""

    def __init__(self) -> None:
        self._drafts: dict[Value, _Draft] = {}
        self.current: Value = ANYTHING

    def array(self, shape: ArrayShape, *, unique: bool) -> None:
        draft = self._drafts.setdefault(self.current, _Draft())
        draft.unique = draft.unique or unique
        draft.kinds.add("array")
        while len(draft.prefix) < len(shape.prefix):
            draft.prefix.append(set(draft.rest))
        for index, known in enumerate(draft.prefix):
            known.add(shape.item(index))
        draft.rest.add(shape.rest)

    def object(self, keys: Keys, *, distinct: bool) -> None:
        draft = self._drafts.setdefault(self.current, _Draft())
        draft.distinct = draft.distinct or distinct
        draft.kinds.add("object")
        listed = dict(keys.named)
        for name, value in keys.named:
            draft.names.setdefault(name, set(draft.others)).add(value)
        for cell in keys.others:
            draft.others.add(cell.value)
            for name, known in draft.names.items():
                if name not in listed:
                    known.add(cell.value)

    def scalars(self, value: Value, kinds: Iterable[str]) -> None:
        """JSON types of ``value``, where they decide how its text is read."""
        self._drafts.setdefault(value, _Draft()).kinds.update(kinds)

    def part(self, name: str | None, value: Value) -> None:
        """A part of the values of a key (``None``: of undeclared ones) has a rule of its own."""
        draft = self._drafts.setdefault(self.current, _Draft())
        known = draft.others if name is None else draft.names.setdefault(name, set(draft.others))
        known.add(value)

    def plan(self, root: Value) -> GuardPlan | None:
        """The plan for the whole document, ``None`` if nothing needs a guard."""
        if not any(draft.unique or draft.distinct for draft in self._drafts.values()):
            return None
        numbers = {value: number for number, value in enumerate(self._drafts)}

        def nodes(values: set[Value]) -> Nodes:
            return frozenset(numbers[value] for value in values if value in numbers and value != NEVER)

        found = tuple(
            GuardNode(
                draft.unique,
                draft.distinct,
                tuple(nodes(item) for item in draft.prefix),
                nodes(draft.rest),
                tuple((name, nodes(known)) for name, known in draft.names.items()),
                nodes(draft.others),
                frozenset(draft.kinds),
            )
            for draft in self._drafts.values()
        )
        return GuardPlan(found, nodes({root}))
