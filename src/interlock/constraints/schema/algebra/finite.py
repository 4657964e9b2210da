"""Values of few members, all of them listed: what must differ can run out of those."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

from interlock.constraints.schema.algebra import presence
from interlock.constraints.schema.algebra.arrays import ArrayShape, Contains
from interlock.constraints.schema.algebra.objects import Cell, ObjectShape, cells
from interlock.constraints.schema.algebra.presence import Presence, Term
from interlock.constraints.schema.algebra.scalars import Scalars
from interlock.constraints.schema.graph import Value, meet
from interlock.constraints.schema.matching import matching
from interlock.constraints.schema.numbers.sets import members
from interlock.constraints.schema.numbers.text import spell
from interlock.constraints.schema.problems import Budget, RefusedError
from interlock.constraints.schema.text.finite import words

Member = tuple[str, Any]
"""JSON type and value; of an array its members, of an object pairs of key and member in order of the keys."""

Slots = tuple[tuple[int, frozenset[Member]], ...]
"""Positions of an array that must be filled, and the few members each can have."""

_MAX_SLOTS = 64
_MAX_LISTED = 1_000
_MAX_WORK = 8  # intermediate results, in multiples of the limit


class Sets(Protocol):
    """What is asked of the algebra."""

    budget: Budget

    def scalars(self, value: Value) -> Scalars: ...

    def arrays(self, value: Value) -> list[ArrayShape]: ...

    def objects(self, value: Value) -> list[ObjectShape]: ...

    def inhabited(self, value: Value) -> bool: ...

    def usable(self, shape: ObjectShape) -> Presence | None: ...

    def is_open(self, value: Value) -> bool: ...


class Finite:
    """closed: objects with declared keys have no others, as they are written."""

    def __init__(self, algebra: Sets, *, closed: bool) -> None:
        self._algebra = algebra
        self._closed = closed
        self._open: set[Value] = set()

    def slots(self, shape: ArrayShape) -> Slots | None:
        """The positions of an array of different items that have few members; ``None`` where they cannot all differ."""
        if any(self._too_few(shape, rule) for rule in shape.contains):
            return None
        size = min(self._num_needed(shape), _MAX_SLOTS)
        known: dict[Value, frozenset[Member] | None] = {}
        found = []
        for index in range(size):
            value = shape.item(index)
            if value not in known:
                known[value] = self.members(value, size)
            listed = known[value]
            if listed is not None and len(listed) < size:
                found.append((index, listed))
        return tuple(found) if matching([listed for _, listed in found]) is not None else None

    def may_run_out(self, shape: ArrayShape) -> bool:
        """Whether different items may run out in ways that ``slots`` does not tell: at positions behind those it lists, or
        because ``contains`` needs particular ones."""
        size, items = self._num_needed(shape), {*shape.prefix, shape.rest}
        if size > _MAX_SLOTS and any(self.members(one, min(size, _MAX_LISTED)) for one in items):
            return True
        needed = {meet(item, rule.value) for item in items for rule in shape.contains}
        return any(self.members(one, _MAX_LISTED) for one in needed)

    def _too_few(self, shape: ArrayShape, rule: Contains) -> bool:
        """Whether fewer different items than there must be can satisfy ``rule``."""
        if not rule.low:
            return False
        places = range(rule.start, max(rule.start, len(shape.prefix)) + 1)
        found: set[Member] = set()
        for value in {meet(shape.item(index), rule.value) for index in places}:
            listed = self.members(value, rule.low)
            if listed is None:
                return False
            found |= listed
        return len(found) < rule.low

    def _num_needed(self, shape: ArrayShape) -> int:
        """How many items there must be."""
        size = shape.low
        for rule in shape.contains:
            places = (
                index
                for index in range(rule.start, min(_MAX_SLOTS, shape.high or _MAX_SLOTS))
                if self._algebra.inhabited(meet(shape.item(index), rule.value))
            )
            size = max([size, *(index + 1 for index in islice(places, rule.low))])
        return size

    def members(self, value: Value, limit: int) -> frozenset[Member] | None:
        """All members, or ``None`` if there are more than ``limit``, or if that is not easily told."""
        if value in self._open or self._algebra.is_open(value):
            return None
        self._open.add(value)
        try:
            found: set[Member] = set()
            for part in self._parts(value, limit):
                if part is None:
                    return None
                found.update(part)
                if len(found) > limit:
                    return None
            return frozenset(found)
        except RefusedError:
            return None
        finally:
            self._open.discard(value)

    def _parts(self, value: Value, limit: int) -> Iterator[list[Member] | None]:
        self._algebra.budget.spend()
        scalars = self._algebra.scalars(value)
        yield [("null", None)] if scalars.null else []
        yield [("boolean", flag) for flag in scalars.bools]
        numbers = members(scalars.numbers, limit)
        yield None if numbers is None else [("number", number) for number in numbers]
        strings = words(scalars.strings, limit)
        yield None if strings is None else [("string", word) for word in strings]
        for array in self._algebra.arrays(value):
            yield self._arrays(array, limit)
        for shape in self._algebra.objects(value):
            yield self._objects(shape, limit)

    def _arrays(self, shape: ArrayShape, limit: int) -> list[Member] | None:
        if shape.contains or shape.repeats:
            return None
        out: list[Member] = []
        level: list[tuple[Member, ...]] = [()]
        while level:
            size = len(level[0])
            if size >= shape.low:
                out += [("array", items) for items in level]
            if size == shape.high or not self._algebra.inhabited(shape.item(size)):
                break
            listed = self.members(shape.item(size), limit)
            if listed is None or len(out) > limit or len(level) * len(listed) > limit * _MAX_WORK:
                return None
            ordered = sorted(listed, key=repr)
            level = [(*items, one) for items in level for one in ordered if not (shape.unique and one in items)]
            self._algebra.budget.spend(len(level))
        return out if len(out) <= limit else None

    def _objects(self, shape: ObjectShape, limit: int) -> list[Member] | None:
        held = self._algebra.usable(shape)
        if held is None:
            return []
        ways = presence.terms(held)
        if ways is None or shape.exists or shape.choices:
            return None
        settled = shape.settled()
        if any(self._has_others(settled, cell) for cell in cells(settled)):
            return None
        level: list[tuple[tuple[str, Member], ...]] = [()]
        for name, value in sorted(settled.names):
            if all(name in way.forbid for way in ways) or not self._algebra.inhabited(value):
                continue
            listed = self.members(value, limit)
            if listed is None or len(level) * (len(listed) + 1) > limit * _MAX_WORK:
                return None
            with_it = [(*pairs, (name, one)) for pairs in level for one in sorted(listed, key=repr)]
            level = with_it if all(name in way.need for way in ways) else [*level, *with_it]
            self._algebra.budget.spend(len(level))
        out: list[Member] = [("object", pairs) for pairs in level if any(_fits(pairs, way) for way in ways)]
        return out if len(out) <= limit else None

    def _has_others(self, shape: ObjectShape, cell: Cell) -> bool:
        is_closed = self._closed and shape.declares and not shape.speaks and not cell.declared
        return not is_closed and self._algebra.inhabited(cell.value)


def _fits(pairs: tuple[tuple[str, Member], ...], way: Term) -> bool:
    names = {name for name, _ in pairs}
    enough = way.low <= len(names) and (way.high is None or len(names) <= way.high)
    return enough and way.need <= names and not way.forbid & names


def json_text(member: Member) -> str:
    """The member as JSON. Raises ``UnwritableError`` for a number without a finite decimal."""
    kind, value = member
    if kind == "number":
        return spell(value)
    if kind == "array":
        return f"[{','.join(map(json_text, value))}]"
    if kind == "object":
        return "{" + ",".join(f"{json.dumps(key)}:{json_text(one)}" for key, one in value) + "}"
    return json.dumps(value)
