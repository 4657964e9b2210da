"""Array shapes: one way an array may look, closed under intersection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from interlock.constraints.schema.graph import ANYTHING, NEVER, Value, meet

_MAX_PREFIX = 2000


@dataclass(frozen=True, slots=True)
class Contains:
    """Of the items from ``start`` on, ``low`` to ``high`` are of a kind; ``unlike`` is its complement."""

    value: Value
    unlike: Value
    low: int
    high: int | None
    start: int = 0


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """prefix, rest: values by position. low, high: number of items. unique: no two items are equal. repeats: two
    items are equal. evaluated, evaluated_all, evaluated_kinds: for ``unevaluatedItems``."""

    prefix: tuple[Value, ...] = ()
    rest: Value = ANYTHING
    low: int = 0
    high: int | None = None
    contains: frozenset[Contains] = frozenset()
    unique: bool = False
    repeats: bool = False
    evaluated: int = 0
    evaluated_all: bool = False
    evaluated_kinds: frozenset[Contains] = frozenset()

    def item(self, index: int) -> Value:
        return self.prefix[index] if index < len(self.prefix) else self.rest


TOP: Final = ArrayShape()


def both(left: ArrayShape, right: ArrayShape) -> ArrayShape | None:
    if left == TOP:
        return right
    if right == TOP:
        return left
    size = max(len(left.prefix), len(right.prefix))
    highs = [high for high in (left.high, right.high) if high is not None]
    return settle(
        ArrayShape(
            prefix=tuple(meet(left.item(index), right.item(index)) for index in range(size)),
            rest=meet(left.rest, right.rest),
            low=max(left.low, right.low),
            high=min(highs) if highs else None,
            contains=left.contains | right.contains,
            unique=left.unique or right.unique,
            repeats=left.repeats or right.repeats,
            evaluated=max(left.evaluated, right.evaluated),
            evaluated_all=left.evaluated_all or right.evaluated_all,
            evaluated_kinds=left.evaluated_kinds | right.evaluated_kinds,
        )
    )


def settle(shape: ArrayShape) -> ArrayShape | None:
    """Move what ``contains`` says into items and length where that is possible; ``None`` if nothing is left."""
    kept = set()
    for rule in shape.contains:
        if rule.high is not None and rule.low > rule.high:
            return None
        if rule.value == ANYTHING:
            shape = replace(shape, low=max(shape.low, rule.start + rule.low) if rule.low else shape.low)
            if rule.high is not None:
                shape = replace(shape, high=_least(shape.high, rule.start + rule.high))
        elif rule.high == 0 and rule.start <= _MAX_PREFIX:
            shape = _exclude(shape, rule)
        elif rule.low or rule.high is not None:
            if rule.value == NEVER and rule.low:
                return None
            kept.add(rule)
    shape = replace(shape, contains=frozenset(kept))
    for index, value in enumerate(shape.prefix):
        if value == NEVER:
            shape = replace(shape, high=_least(shape.high, index), prefix=shape.prefix[:index], rest=NEVER)
            break
    if shape.rest == NEVER:
        shape = replace(shape, high=_least(shape.high, len(shape.prefix)))
    if shape.high is not None and len(shape.prefix) > shape.high:
        shape = replace(shape, prefix=shape.prefix[: shape.high], rest=NEVER)
    if shape.high is not None and shape.low > shape.high:
        return None
    if shape.high is not None and any(rule.low > shape.high - rule.start for rule in shape.contains):
        return None
    return shape


def _exclude(shape: ArrayShape, rule: Contains) -> ArrayShape:
    size = max(len(shape.prefix), rule.start)
    items = [shape.item(index) for index in range(size)]
    prefix = tuple(
        meet(value, rule.unlike) if index >= rule.start else value for index, value in enumerate(items)
    )
    return replace(shape, prefix=prefix, rest=meet(shape.rest, rule.unlike))


def _least(left: int | None, right: int) -> int:
    return right if left is None else min(left, right)
