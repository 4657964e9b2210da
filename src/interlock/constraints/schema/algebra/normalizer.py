"""Schemas to disjunctions of shapes: the part that objects and arrays share.

``positive`` and ``negative`` follow the in-place applicators; what the keywords of one kind say comes from
the subclasses. Alternatives are multiplied inside what is already known, and pruned as soon as they are
empty, so that exact exclusive choice stays small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from interlock.config import SchemaLimits, raised_by
from interlock.constraints.schema.algebra.data import as_schema
from interlock.constraints.schema.algebra.scalars import ScalarAlgebra
from interlock.constraints.schema.graph import NEVER, Graph, Schema, Value
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Budget, RefusedError

Shape = TypeVar("Shape")
Inhabited = Callable[[Value], bool]


_MANY = 4  # branches of a oneOf
_MULTIPLYING = ("allOf", "oneOf", "anyOf", "not", "if", "dependentSchemas")


def _ordered(value: Value) -> Iterable[int]:
    return value if len(value) < 2 else sorted(value, key=lambda number: (number < 0, abs(number)))


class _TooManyAlternativesError(RefusedError):
    """A normal form of more alternatives than there may be."""


class _NotYetError(Exception):
    """A question about a schema that is just being normalised."""


class Normalizer(ABC, Generic[Shape]):
    """kind: the JSON type. keywords: of this kind; a schema without any of them says nothing of it. unevaluated: the
    keyword that needs to know what was evaluated."""

    kind: str
    keywords: frozenset[str]
    unevaluated: str
    python_type: type
    top: Shape

    def __init__(self, graph: Graph, scalars: ScalarAlgebra, options: SchemaOptions, budget: Budget) -> None:
        self.graph = graph
        self.scalars = scalars
        self.options = options
        self.budget = budget
        self.inhabited: Inhabited = lambda _: True
        self._literals: dict[tuple[int, bool], list[Shape]] = {}
        self._values: dict[Value, list[Shape]] = {}
        self._simplified: dict[Value, Value] = {}
        self._open: set[tuple[int, bool]] = set()
        self._barriers: list[set[tuple[int, bool]]] = []

    # what subclasses say

    @abstractmethod
    def meet(self, left: Shape, right: Shape) -> Shape | None: ...

    @abstractmethod
    def compact(self, shapes: Iterable[Shape]) -> list[Shape]: ...

    @abstractmethod
    def suspects(self, shape: Shape) -> Iterable[Value]:
        """Merged values without which the shape is empty."""

    def clashes(self, left: Shape, right: Shape) -> Iterable[Value]:
        """Some of the suspects of what both are, found without it."""
        del left, right
        return ()

    @abstractmethod
    def own(self, schema: Schema) -> Shape | None:
        """What the keywords of this kind say."""

    @abstractmethod
    def own_negative(self, schema: Schema) -> list[Shape]:
        """The ways to break one of them."""

    @abstractmethod
    def forget(self, shape: Shape) -> Shape:
        """Without evaluated parts: nothing is evaluated under a negation."""

    @abstractmethod
    def close(self, shape: Shape, schema: Schema) -> Shape | None:
        """Apply ``unevaluated…`` to what ``shape`` has not evaluated."""

    @abstractmethod
    def breach(self, shape: Shape, schema: Schema) -> list[Shape]:
        """The ways to break ``unevaluated…``."""

    def dependents(self, schema: Schema) -> list[tuple[Shape, Shape, Schema]]:
        """Schemas that hold under a condition: (condition, its negation, schema)."""
        del schema
        return []

    # the walk

    def of_value(self, value: Value) -> list[Shape]:
        if value == NEVER:
            return []
        known = self._values.get(value)
        if known is None:
            known = [] if self.is_other(value) else [self.top]
            for literal in _ordered(value) if known else ():
                known = self.product(known, self.literal(literal))
            self._values[value] = known
        return known

    def is_other(self, value: Value) -> bool:
        """True only if ``type`` leaves nothing of this kind."""
        for literal in value:
            if literal > 0:
                named = self.scalars.types(self.graph.schema(literal))
                if named is not None and self.kind not in named:
                    return True
        return False

    def simplified(self, value: Value) -> Value:
        """A scalar value without the literals that add nothing, so that equal values look equal."""
        if len(value) < 2:
            return value
        known = self._simplified.get(value)
        if known is None:
            known = value
            for literal in sorted(value):
                less = known - {literal}
                if (
                    less
                    and self._is_scalar(less)
                    and self.scalars.of_value(less) == self.scalars.of_value(value)
                ):
                    known = less
            self._simplified[value] = known
        return known

    def _is_scalar(self, value: Value) -> bool:
        """True only if no array and no object is in ``value``."""
        for literal in value:
            if literal > 0:
                schema = self.graph.schema(literal)
                named = self.scalars.types(schema)
                if named is not None and not named & {"array", "object"}:
                    return True
                listed = schema.get("enum") or ([schema.value["const"]] if schema.has("const") else None)
                if listed is not None and not any(isinstance(item, (dict, list)) for item in listed):
                    return True
        return False

    def literal(self, literal: int) -> list[Shape]:
        schema = self.graph.schema(literal)
        return self._remembered(schema, literal > 0)

    def _remembered(self, schema: Schema, is_positive: bool) -> list[Shape]:
        key = (schema.number, is_positive)
        known = self._literals.get(key)
        if known is not None:
            return known
        if key in self._open:
            if any(key in barrier for barrier in self._barriers):
                raise _NotYetError
            raise RefusedError(
                "the schema refers to itself without end", keyword="$ref", pointer=schema.pointer
            )
        self._open.add(key)
        self.budget.spend()
        try:
            known = self._positive(schema) if is_positive else self._negative(schema)
        except RefusedError as refused:
            if isinstance(refused, _TooManyAlternativesError):
                for keyword in filter(schema.has, _MULTIPLYING):
                    raise refused.at(keyword, f"{schema.pointer}/{keyword}") from None
            raise refused.at("", schema.pointer) from None
        finally:
            self._open.discard(key)
        self._literals[key] = known
        return known

    def positive(self, schema: Schema) -> list[Shape]:
        return self._remembered(schema, True)

    def negative(self, schema: Schema) -> list[Shape]:
        return self._remembered(schema, False)

    def product(self, left: list[Shape], right: list[Shape], *, many: bool = False) -> list[Shape]:
        """Both. many: it is one of many products, whose alternatives should not be multiplied out."""
        del many
        if left == [self.top]:
            return right
        if right == [self.top]:
            return left
        return self.union(self._met(left, right))

    def _met(self, left: list[Shape], right: list[Shape]) -> Iterator[Shape]:
        for first in left:
            for second in right:
                self.budget.spend(4)
                if not self._possible(self.clashes(first, second)):
                    continue
                shape = self.meet(first, second)
                if shape is not None and self._possible(self.suspects(shape)):
                    yield shape

    def union(self, shapes: Iterable[Shape]) -> list[Shape]:
        found = dict.fromkeys(shapes)
        if len(found) < 2:
            return list(found)
        out = self.compact(found)
        if self.top in out:
            return [self.top]
        limit = self.options.limits.max_alternatives
        if len(out) > limit:
            raise _TooManyAlternativesError(
                f"too complex: more than {limit} alternatives for one {self.kind}, as 'anyOf', 'oneOf', 'not' and 'if' multiply"
                f" where they meet ({raised_by(SchemaLimits, 'max_alternatives')})",
                too_complex=True,
            )
        return out

    def _possible(self, values: Iterable[Value]) -> bool:
        """False only if one of ``values`` is known to be empty."""
        for value in values:
            if value == NEVER:
                return False
            if len(value) < 2:
                continue
            self._barriers.append(set(self._open))
            try:
                if not self.inhabited(value):
                    return False
            except (_NotYetError, RefusedError):
                continue  # not known now; lowering decides
            finally:
                self._barriers.pop()
        return True

    def _constants(self, schema: Schema) -> list[Schema] | None:
        """The values of this kind that ``const`` and ``enum`` list, as schemas; ``None`` without them."""
        listed: list[list[Any]] = []
        if schema.has("const"):
            listed.append([schema.value["const"]])
        if schema.has("enum"):
            listed.append(schema.value["enum"])
        if not listed:
            return None
        found = [[value for value in values if isinstance(value, self.python_type)] for values in listed]
        if len(found) > 1:
            found[0] = [value for value in found[0] if value in found[1]]
        return [self.graph.synthetic(schema, as_schema(value)) for value in found[0]]

    def _positive(self, schema: Schema) -> list[Shape]:
        if isinstance(schema.value, bool):
            return [self.top] if schema.value else []
        out = self._before_unevaluated(schema)
        if schema.has(self.unevaluated):
            closed = [self.close(shape, schema) for shape in out]
            out = self.union(shape for shape in closed if shape is not None)
        return out

    def _before_unevaluated(self, schema: Schema) -> list[Shape]:
        named = self.scalars.types(schema)
        if named is not None and self.kind not in named:
            return []
        own = self.top if schema.meant.keys().isdisjoint(self.keywords) else self.own(schema)
        if own is None:
            return []
        out = [own]
        constants = self._constants(schema)
        if constants is not None:
            out = self.product(
                out, self.union(self.forget(s) for item in constants for s in self.positive(item))
            )
        if schema.is_plain:
            return out
        for target in (*self.graph.references(schema), *self.graph.children(schema, "allOf")):
            out = self.product(out, self.positive(target))
        for condition, otherwise, then in self.dependents(schema):
            held = self.product(self.product(out, [condition]), self.positive(then))
            out = self.union([*self.product(out, [otherwise]), *held])
        out = self._conditional(schema, out)
        if schema.has("anyOf"):
            out = self._any(out, self.graph.children(schema, "anyOf"))
        if schema.has("oneOf"):
            out = self._one(out, self.graph.children(schema, "oneOf"))
        child = self.graph.only(schema, "not")
        return out if child is None else self.product(out, self.negative(child))

    def _conditional(self, schema: Schema, out: list[Shape]) -> list[Shape]:
        condition = self.graph.only(schema, "if")
        if condition is None or not (schema.has("then") or schema.has("else") or self._tracks()):
            return out
        branches: list[Shape] = []
        for name, tested in (("then", self.positive(condition)), ("else", self.negative(condition))):
            branch = self.graph.only(schema, name)
            found = self.product(out, tested)
            branches += found if branch is None else self.product(found, self.positive(branch))
        return self.union(branches)

    def _tracks(self) -> bool:
        return self.graph.library.has_unevaluated

    def _any(self, out: list[Shape], children: list[Schema]) -> list[Shape]:
        if not self._tracks():
            return self.product(out, self.union(s for child in children for s in self.positive(child)))
        # which branches hold decides what is evaluated: tell all cases apart
        none: list[Shape] = out
        some: list[Shape] = []
        for child in children:
            yes, no = self.positive(child), self.negative(child)
            some = self.union([*self.product(some, yes), *self.product(some, no), *self.product(none, yes)])
            none = self.product(none, no)
        return some

    def _one(self, out: list[Shape], children: list[Schema]) -> list[Shape]:
        found: list[Shape] = []
        for index, child in enumerate(children):
            held = self.product(out, self.positive(child))
            for other_index, other in enumerate(children):
                if held and other_index != index and self._overlaps(held, other):
                    held = self.product(held, self.negative(other), many=len(children) > _MANY)
            found += held
        return self.union(found)

    def _overlaps(self, held: list[Shape], other: Schema) -> bool:
        return next(self._met(held, self.positive(other)), None) is not None

    def _negative(self, schema: Schema) -> list[Shape]:
        if isinstance(schema.value, bool):
            return [] if schema.value else [self.top]
        named = self.scalars.types(schema)
        if named is not None and self.kind not in named:
            return [self.top]
        out = self.own_negative(schema)
        constants = self._constants(schema)
        if constants is not None:
            none = [self.top]
            for item in constants:
                none = self.product(none, self.negative(item))
            out += none
        for target in (*self.graph.references(schema), *self.graph.children(schema, "allOf")):
            out += self.negative(target)
        for condition, _, then in self.dependents(schema):
            out += self.product([condition], self.negative(then))
        out += self._negative_conditional(schema)
        if schema.has("anyOf"):
            none = [self.top]
            for child in self.graph.children(schema, "anyOf"):
                none = self.product(none, self.negative(child))
            out += none
        if schema.has("oneOf"):
            out += self._not_one(self.graph.children(schema, "oneOf"))
        denied = self.graph.only(schema, "not")
        if denied is not None:
            out += self.positive(denied)
        if schema.has(self.unevaluated):
            out += [
                broken for shape in self._before_unevaluated(schema) for broken in self.breach(shape, schema)
            ]
        return self.union(self.forget(shape) for shape in out)

    def _negative_conditional(self, schema: Schema) -> list[Shape]:
        condition = self.graph.only(schema, "if")
        out: list[Shape] = []
        if condition is not None:
            for name, tested in (("then", True), ("else", False)):
                branch = self.graph.only(schema, name)
                if branch is not None:
                    held = self.positive(condition) if tested else self.negative(condition)
                    out += self.product(held, self.negative(branch))
        return out

    def _not_one(self, children: list[Schema]) -> list[Shape]:
        none = [self.top]
        out: list[Shape] = []
        for index, child in enumerate(children):
            none = self.product(none, self.negative(child))
            for other in children[index + 1 :]:
                out += self.product(self.positive(child), self.positive(other))
        return [*out, *none]
