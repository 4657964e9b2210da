"""Array keywords to array shapes, and their negations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from interlock.constraints.schema.algebra import arrays
from interlock.constraints.schema.algebra.arrays import ArrayShape, Contains
from interlock.constraints.schema.algebra.normalizer import Normalizer
from interlock.constraints.schema.dialects import Dialect
from interlock.constraints.schema.graph import ANYTHING, NEVER, Schema, Value
from interlock.constraints.schema.problems import RefusedError


class ArrayNormalizer(Normalizer[ArrayShape]):
    kind = "array"
    keywords = frozenset(
        {"items", "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "minItems", "maxItems",
         "uniqueItems"}
    )  # fmt: skip
    unevaluated = "unevaluatedItems"
    python_type = list
    top = arrays.TOP

    def meet(self, left: ArrayShape, right: ArrayShape) -> ArrayShape | None:
        return arrays.both(left, right)

    def compact(self, shapes: Iterable[ArrayShape]) -> list[ArrayShape]:
        return list(shapes)

    def suspects(self, shape: ArrayShape) -> Iterable[Value]:
        return [shape.item(index) for index in range(min(shape.low, len(shape.prefix) + 1))]

    def forget(self, shape: ArrayShape) -> ArrayShape:
        if not (shape.evaluated or shape.evaluated_all or shape.evaluated_kinds):
            return shape
        return replace(shape, evaluated=0, evaluated_all=False, evaluated_kinds=frozenset())

    def own(self, schema: Schema) -> ArrayShape | None:
        prefix, rest = self._items(schema)
        low, high = schema.get("minItems"), schema.get("maxItems")
        rule = self._contains(schema)
        tracks = self._tracks()
        shape = ArrayShape(
            prefix=tuple(self.graph.value(child) for child in prefix),
            rest=ANYTHING if rest is None else self.graph.value(rest),
            low=int(low or 0),
            high=None if high is None else int(high),
            contains=frozenset() if rule is None else frozenset({rule}),
            unique=schema.get("uniqueItems") is True,
            evaluated=len(prefix) if tracks else 0,
            evaluated_all=tracks and rest is not None,
            evaluated_kinds=(
                frozenset({rule}) if tracks and rule and schema.dialect >= Dialect.DRAFT2020 else frozenset()
            ),
        )
        return arrays.settle(shape)

    def _items(self, schema: Schema) -> tuple[list[Schema], Schema | None]:
        """Schemas by position and of the rest, in the new and the old spelling."""
        if isinstance(schema.get("items"), list):
            return self.graph.children(schema, "items"), self.graph.only(schema, "additionalItems")
        return self.graph.children(schema, "prefixItems"), self.graph.only(schema, "items")

    def _contains(self, schema: Schema) -> Contains | None:
        child = self.graph.only(schema, "contains")
        if child is None:
            return None
        low, high = schema.get("minContains"), schema.get("maxContains")
        return Contains(
            self.graph.value(child),
            self.graph.value(child, positive=False),
            1 if low is None else int(low),
            None if high is None else int(high),
        )

    def own_negative(self, schema: Schema) -> list[ArrayShape]:
        out: list[ArrayShape | None] = []
        prefix, rest = self._items(schema)
        for index, child in enumerate(prefix):
            value = self.graph.value(child, positive=False)
            if value != NEVER:
                out.append(ArrayShape(prefix=(ANYTHING,) * index + (value,), low=index + 1))
        if rest is not None:
            unlike, like = self.graph.value(rest, positive=False), self.graph.value(rest)
            out.append(_having(Contains(unlike, like, 1, None, len(prefix))))
        low, high = schema.get("minItems"), schema.get("maxItems")
        if low:
            out.append(ArrayShape(high=int(low) - 1))
        if high is not None:
            out.append(ArrayShape(low=int(high) + 1))
        rule = self._contains(schema)
        if rule is not None:
            if rule.low:
                out.append(_having(replace(rule, low=0, high=rule.low - 1)))
            if rule.high is not None:
                out.append(_having(replace(rule, low=rule.high + 1, high=None)))
        if schema.get("uniqueItems") is True:
            out.append(ArrayShape(low=2, repeats=True))
        return [shape for shape in out if shape is not None]

    def close(self, shape: ArrayShape, schema: Schema) -> ArrayShape | None:
        child = self.graph.only(schema, self.unevaluated)
        if child is None or shape.evaluated_all:
            return shape
        value = self._unless_contained(shape, self.graph.value(child), schema)
        closed = arrays.both(shape, ArrayShape(prefix=(ANYTHING,) * shape.evaluated, rest=value))
        return None if closed is None else replace(closed, evaluated_all=True)

    def _unless_contained(self, shape: ArrayShape, value: Value, schema: Schema) -> Value:
        """What an item must be that the prefix has not evaluated: ``value``, or of a contained kind."""
        kinds = {rule.value for rule in shape.evaluated_kinds}
        if not kinds or value == ANYTHING:
            return value
        if value == NEVER and len(kinds) == 1:
            return kinds.pop()
        raise RefusedError(
            "beside several 'contains', or with a schema other than false beside one, this is not supported",
            keyword=self.unevaluated,
            pointer=f"{schema.pointer}/{self.unevaluated}",
        )

    def breach(self, shape: ArrayShape, schema: Schema) -> list[ArrayShape]:
        child = self.graph.only(schema, self.unevaluated)
        if child is None or shape.evaluated_all:
            return []
        if shape.evaluated_kinds:
            raise RefusedError(
                "its negation beside 'contains' is not supported",
                keyword=self.unevaluated,
                pointer=f"{schema.pointer}/{self.unevaluated}",
            )
        unlike, like = self.graph.value(child, positive=False), self.graph.value(child)
        found = _having(Contains(unlike, like, 1, None, shape.evaluated))
        both = None if found is None else arrays.both(shape, found)
        return [] if both is None else [both]


def _having(rule: Contains) -> ArrayShape | None:
    return arrays.settle(ArrayShape(contains=frozenset({rule})))
