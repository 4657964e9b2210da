"""Collect, while a grammar is written, what its guard must watch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.arrays import ArrayShape
from interlock.constraints.schema.graph import ANYTHING, NEVER, Value
from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE, GuardNode, GuardPlan, Nodes, Slots
from interlock.constraints.schema.lower.object_keys import Keys
from interlock.constraints.schema.lower.plenty import ArrayPlaces, ObjectPlaces, Places, object_places, rooms


@dataclass(slots=True)
class _Draft:
    unique: bool = False
    distinct: bool = False
    once: bool = False
    prefix: list[set[Value]] = field(default_factory=list)
    rest: set[Value] = field(default_factory=set)
    names: dict[str, set[Value]] = field(default_factory=dict)
    others: set[Value] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    num_arrays: int = 0
    slots: Slots = ()
    inexact: bool = False
    places: Places = field(default_factory=Places)

    def add_array(
        self, shape: ArrayShape, slots: Slots, places: ArrayPlaces | None, *, unique: bool, inexact: bool
    ) -> None:
        self.unique = self.unique or unique
        self.places.arrays.append(places)
        self.kinds.add("array")
        self.num_arrays += 1
        is_alone = self.num_arrays == 1
        self.inexact = self.inexact or inexact or (not is_alone and bool(self.slots or slots))
        self.slots = slots if is_alone else ()
        while len(self.prefix) < len(shape.prefix):
            self.prefix.append(set(self.rest))
        for index, known in enumerate(self.prefix):
            known.add(shape.item(index))
        self.rest.add(shape.rest)

    def add_object(self, keys: Keys, places: ObjectPlaces | None, *, distinct: bool, once: bool) -> None:
        self.distinct = self.distinct or distinct
        self.once = self.once or once
        self.places.objects.append(places)
        self.kinds.add("object")
        listed = dict(keys.named)
        for name, value in keys.named:
            self.names.setdefault(name, set(self.others)).add(value)
        for cell in keys.others:
            self.others.add(cell.value)
            for name, known in self.names.items():
                if name not in listed:
                    known.add(cell.value)

    def add_part(self, name: str | None, value: Value) -> None:
        known = self.others if name is None else self.names.setdefault(name, set(self.others))
        known.add(value)


class GuardRecorder:
    """Shapes are recorded under the value they belong to; several shapes of one value are watched together."""

    def __init__(self) -> None:
        self._records: list[tuple[Value, Callable[[_Draft], None]]] = []
        self._is_needed = False
        self._is_open = False
        self.current: Value = ANYTHING

    def array(
        self,
        shape: ArrayShape,
        *,
        unique: bool,
        places: Callable[[], ArrayPlaces | None] = lambda: None,
        slots: Slots = (),
        inexact: bool = False,
    ) -> None:
        """places: asked only where there is a guard. inexact: items may run out in ways that ``slots`` does not tell."""
        self._is_needed = self._is_needed or unique

        def record(draft: _Draft) -> None:
            draft.add_array(shape, slots, places(), unique=unique, inexact=inexact)

        self._records.append((self.current, record))

    def object(self, keys: Keys, *, distinct: bool, once: bool, any_order: bool) -> None:
        """distinct, once: see ``GuardNode``."""
        self._is_needed = self._is_needed or distinct
        self._is_open = self._is_open or once

        def record(draft: _Draft) -> None:
            draft.add_object(keys, object_places(keys, any_order=any_order), distinct=distinct, once=once)

        self._records.append((self.current, record))

    def scalars(self, value: Value, kinds: Iterable[str]) -> None:
        """JSON types of ``value``, where they decide how its text is read."""
        self._records.append((value, lambda draft: draft.kinds.update(kinds)))

    def part(self, name: str | None, value: Value) -> None:
        """A part of the values of a key (``None``: of undeclared ones) has a rule of its own."""
        self._records.append((self.current, lambda draft: draft.add_part(name, value)))

    def plan(self, root: Value, algebra: Algebra, *, is_json: bool) -> GuardPlan | None:
        """The plan for the whole document, ``None`` if nothing needs a guard. is_json: it is written as JSON."""
        if not (self._is_needed or self._is_open):
            return None
        if is_json and not self._is_needed:
            return EVERY_KEY_ONCE
        drafts: dict[Value, _Draft] = {}
        for value, record in self._records:
            record(drafts.setdefault(value, _Draft()))
        room = rooms({value: draft.places for value, draft in drafts.items()}, algebra)
        numbers = {value: number for number, value in enumerate(drafts)}

        def nodes(values: set[Value]) -> Nodes:
            return frozenset(numbers[value] for value in values if value in numbers and value != NEVER)

        found = tuple(
            GuardNode(
                draft.unique,
                draft.distinct,
                draft.once,
                tuple(nodes(item) for item in draft.prefix),
                nodes(draft.rest),
                tuple((name, nodes(known)) for name, known in draft.names.items()),
                nodes(draft.others),
                frozenset(draft.kinds),
                draft.slots,
                draft.inexact,
                *room[value],
            )
            for value, draft in drafts.items()
        )
        return GuardPlan(found, nodes({root}))
