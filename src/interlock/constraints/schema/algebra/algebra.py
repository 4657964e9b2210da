"""The whole algebra in one place: what a ``Value`` is, type by type, and whether anything is in it."""

from __future__ import annotations

from dataclasses import replace

from interlock.constraints.schema.algebra.array_keywords import ArrayNormalizer
from interlock.constraints.schema.algebra.arrays import ArrayShape, Contains
from interlock.constraints.schema.algebra.finite import Finite, Member
from interlock.constraints.schema.algebra.object_keywords import ObjectNormalizer
from interlock.constraints.schema.algebra.objects import Cell, ObjectShape, both, cells, with_presence
from interlock.constraints.schema.algebra.presence import Presence, Term, is_possible, meet
from interlock.constraints.schema.algebra.scalars import ScalarAlgebra, Scalars
from interlock.constraints.schema.graph import NEVER, Graph, Value
from interlock.constraints.schema.graph import meet as meet_values
from interlock.constraints.schema.numbers.sets import members
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Budget
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.derive import disjoint
from interlock.constraints.schema.text.nodes import Lang, Words

_MANY = 1 << 60


class Algebra:
    def __init__(self, graph: Graph, options: SchemaOptions) -> None:
        self.graph = graph
        self.options = options
        self.budget = Budget(options.limits.max_work)
        self._scalars = ScalarAlgebra(graph, options, self.budget)
        self._objects = ObjectNormalizer(graph, self._scalars, options, self.budget)
        self._arrays = ArrayNormalizer(graph, self._scalars, options, self.budget)
        self._objects.inhabited = self._arrays.inhabited = self.inhabited
        self._inhabited: dict[Value, bool] = {NEVER: False}
        self._asked: set[Value] = set()
        self._provisional = False
        self._different: dict[ArrayShape, bool] = {}
        self._object_shapes: dict[Value, list[ObjectShape]] = {}
        self._array_shapes: dict[Value, list[ArrayShape]] = {}

    def scalars(self, value: Value) -> Scalars:
        return self._scalars.of_value(value)

    def has_only_scalars(self, value: Value) -> bool:
        """True only if ``type`` leaves nothing else."""
        return self._objects.is_other(value) and self._arrays.is_other(value)

    def objects(self, value: Value) -> list[ObjectShape]:
        """Shapes of the objects in ``value``, empty ones left out; impossible names are forbidden in each."""
        known = self._object_shapes.get(value)
        if known is None:
            shapes = [(shape, self.usable(shape)) for shape in self._objects.of_value(value)]
            known = [with_presence(shape, held) for shape, held in shapes if held is not None]
            if not self._asked:  # else an open question may have counted as no
                self._object_shapes[value] = known
        return known

    def arrays(self, value: Value) -> list[ArrayShape]:
        """Shapes of the arrays in ``value``, empty ones left out."""
        known = self._array_shapes.get(value)
        if known is None:
            known = [shape for shape in self._arrays.of_value(value) if self.array_inhabited(shape)]
            if not self._asked:
                self._array_shapes[value] = known
        return known

    def inhabited(self, value: Value) -> bool:
        """Some finite document is in ``value``. A question about itself, asked on the way, counts as no."""
        if not value:
            return True
        known = self._inhabited.get(value)
        if known is not None:
            return known
        if value in self._asked:
            self._provisional = True
            return False
        self._asked.add(value)
        outer, self._provisional = self._provisional, False
        try:
            found = self._has_member(value)
        finally:
            self._asked.discard(value)
        if found or not self._provisional or not self._asked:
            self._inhabited[value] = found
        self._provisional = outer or (self._provisional and not found)
        return found

    def _has_member(self, value: Value) -> bool:
        self.budget.spend()
        if not self._scalars.of_value(value).is_empty():
            return True
        if any(self.array_inhabited(shape) for shape in self._arrays.of_value(value)):
            return True
        shapes = self._objects.of_value(value)
        for shape in shapes:
            held = self.usable(shape)
            if held is not None:
                if len(shapes) == 1 and not self._provisional:  # this is all that ``objects`` would find
                    self._object_shapes[value] = [with_presence(shape, held)]
                return True
        return False

    def array_inhabited(self, shape: ArrayShape) -> bool:
        for index in range(len(shape.prefix) + 1):
            if not self.inhabited(shape.item(index)):  # the array ends before this place
                if shape.low > index:
                    return False
                shape = replace(shape, high=index if shape.high is None else min(shape.high, index))
                break
        has_several = shape.low > 1 or any(rule.low > 1 for rule in shape.contains)
        if shape.unique and has_several and not self._can_differ(shape):
            return False
        return all(self._places(shape, rule) >= rule.low for rule in shape.contains if rule.low)

    def _can_differ(self, shape: ArrayShape) -> bool:
        """As many items as there must be are different ones, as far as that is easily told."""
        known = self._different.get(shape)
        if known is not None:
            return known
        outer, self._provisional = self._provisional, False
        found = Finite(self, closed=False).slots(shape) is not None or self._provisional
        if not self._provisional:
            self._different[shape] = found
        self._provisional = outer or self._provisional
        return found

    def is_open(self, value: Value) -> bool:
        """Whether anything is in ``value`` is being asked."""
        return value in self._asked

    def _places(self, shape: ArrayShape, rule: Contains) -> int:
        """At how many positions an item of the kind may stand."""
        size = len(shape.prefix)
        end = size if shape.high is None else min(size, shape.high)
        found = sum(
            self.inhabited(meet_values(shape.item(index), rule.value)) for index in range(rule.start, end)
        )
        if (shape.high is None or shape.high > size) and self.inhabited(meet_values(shape.rest, rule.value)):
            found += _MANY if shape.high is None else max(0, shape.high - max(size, rule.start))
        return found

    def finite_items(self, shape: ArrayShape, limit: int) -> list[Member] | None:
        """The values that items can have, if they are scalars and at most ``limit``, else ``None``."""
        out: dict[Member, None] = {}
        size = (
            len(shape.prefix)
            if shape.high is not None and shape.high <= len(shape.prefix)
            else len(shape.prefix) + 1
        )
        for index in range(size):
            found = self.finite(shape.item(index), limit)
            if found is None:
                return None
            out.update(dict.fromkeys(found))
            if len(out) > limit:
                return None
        return list(out)

    def finite(self, value: Value, limit: int) -> list[Member] | None:
        """All members of ``value`` as (type, member) if they are scalars and at most ``limit``."""
        scalars = self.scalars(value)
        numbers = members(scalars.numbers, limit)
        if numbers is None or not isinstance(scalars.strings, Words):
            return None
        if len(scalars.strings.words) > limit:
            return None
        out: list[Member] = [("null", None)] if scalars.null else []
        out += [("boolean", flag) for flag in sorted(scalars.bools)]
        out += [("number", number) for number in numbers]
        out += [("string", word) for word in sorted(scalars.strings.words)]
        if len(out) > limit or self.arrays(value) or self.objects(value):
            return None
        return out

    def usable(self, shape: ObjectShape) -> Presence | None:
        """The presence formula with impossible names forbidden, ``None`` if the shape is empty."""
        shape = shape.settled()
        dead = {name for name, value in shape.names if value and not self.inhabited(value)}
        held = meet(shape.presence, Presence(Term(forbid=frozenset(dead)))) if dead else shape.presence
        if held is None:
            return None
        if shape.choices and not self._choosable(replace(shape, presence=held)):
            return None
        if held.factors or held.unit.low or shape.exists:
            alive = [name for name, _ in shape.names if name not in dead]
            open_cells = [cell for cell in cells(shape) if self.inhabited(cell.value)]
            if not self.countable(held, alive, open_cells):
                return None
            if not all(self.exists(shape, rule.keys, rule.value, open_cells, held) for rule in shape.exists):
                return None
        return held

    def _choosable(self, shape: ObjectShape) -> bool:
        """There is a way through all choices."""
        first = min(shape.choices, key=lambda choice: choice.order)
        rest = replace(shape, choices=shape.choices - {first})
        for way in first.ways():
            self.budget.spend(10)
            met = both(rest, way)
            if met is not None and self.usable(met) is not None:
                return True
        return False

    def countable(self, held: Presence, alive: list[str], open_cells: list[Cell]) -> bool:
        others = 0
        for cell in open_cells:
            others += len(cell.keys.words) if isinstance(cell.keys, Words) else _MANY
        return is_possible(
            held, lambda term: term.low <= others + sum(name not in term.forbid for name in alive)
        )

    def exists(
        self, shape: ObjectShape, keys: Lang, value: Value, open_cells: list[Cell], held: Presence
    ) -> bool:
        for name, own in shape.names:
            reached = name not in held.unit.forbid and lang.both(lang.words([name]), keys) is not lang.NONE
            if reached and self.inhabited(meet_values(own, value)):
                return True
        return any(
            self.inhabited(meet_values(cell.value, value)) and not disjoint(cell.keys, keys)
            for cell in open_cells
        )
