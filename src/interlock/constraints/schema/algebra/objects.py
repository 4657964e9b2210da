"""Object shapes: one way an object may look, closed under intersection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from interlock.constraints.schema.algebra import presence
from interlock.constraints.schema.algebra.presence import FREE, Presence, Term
from interlock.constraints.schema.graph import ANYTHING, NEVER, Value, meet, meet_all
from interlock.constraints.schema.problems import Budget, RefusedError
from interlock.constraints.schema.text import lang
from interlock.constraints.schema.text.derive import accepts, is_empty
from interlock.constraints.schema.text.nodes import And, Lang

MAX_CELLS = 40
_MAX_COMPARED = 200


@lru_cache(maxsize=65536)
def matches(pattern: Lang, name: str) -> bool:
    return accepts(pattern, name)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one schema says of keys it does not name: a value per pattern that matches, else ``otherwise``.
    lists: the patterns are ``patternProperties``, so keys that match are declared."""

    patterns: tuple[tuple[Lang, Value], ...] = ()
    otherwise: Value = ANYTHING
    lists: bool = False

    def value(self, name: str) -> Value:
        if not self.patterns:
            return self.otherwise
        found = [value for pattern, value in self.patterns if matches(pattern, name)]
        return meet_all(found) if found else self.otherwise


@dataclass(frozen=True, slots=True)
class Exists:
    """Some key of the language has a value of this kind."""

    keys: Lang
    value: Value


@dataclass(frozen=True, slots=True)
class Choice:
    """At least one of these: a key with a value of a kind, or what a term says of the keys."""

    pairs: frozenset[tuple[str, Value]]
    terms: frozenset[Term]

    def names(self) -> set[str]:
        return {name for name, _ in self.pairs}.union(*(term.need | term.forbid for term in self.terms))

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts choices, narrow ones first, the same way in every process."""
        pairs = sorted((name, sorted(value)) for name, value in self.pairs)
        terms = sorted(term.order for term in self.terms)
        return len(pairs) + len(terms), sorted(self.names()), pairs, terms

    def ways(self) -> Iterator[ObjectShape]:
        """Each of them as a shape, in the same order in every process."""
        for term in sorted(self.terms, key=lambda term: term.order):
            yield ObjectShape(presence=Presence(term))
        for name, value in sorted(self.pairs, key=lambda pair: (pair[0], sorted(pair[1]))):
            yield ObjectShape(names=((name, value),), presence=presence.need([name]))


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that a schema has evaluated (for ``unevaluatedProperties``)."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[Lang] = frozenset()
    everything: bool = False

    def __or__(self, other: Keys) -> Keys:
        if self.everything or other.everything:
            return ALL_KEYS
        return Keys(self.names | other.names, self.patterns | other.patterns)

    def language(self) -> Lang:
        return lang.ANY if self.everything else lang.alt([lang.words(self.names), *self.patterns])


ALL_KEYS: Final = Keys(everything=True)
NO_KEYS: Final = Keys()


@dataclass(slots=True, unsafe_hash=True)  # not frozen: see ``graph.Schema``; nobody changes one
class ObjectShape:
    """names: named keys, in declared order. layers: all other keys. choices: alternatives that are not multiplied
    out. declares: some schema lists properties. speaks: some schema says what else there may be."""

    names: tuple[tuple[str, Value], ...] = ()
    layers: frozenset[Layer] = frozenset()
    exists: frozenset[Exists] = frozenset()
    choices: frozenset[Choice] = frozenset()
    presence: Presence = FREE
    evaluated: Keys = NO_KEYS
    declares: bool = False
    speaks: bool = False

    @property
    def num_tracked(self) -> int:
        """Keys that choices speak of, and choices."""
        return len(self.choices) + len(set().union(*(choice.names() for choice in self.choices)))

    @property
    def is_closed(self) -> bool:
        """There is no key beyond ``names``."""
        return any(layer.otherwise == NEVER and not layer.patterns for layer in self.layers)

    def other(self, name: str) -> Value:
        """What the layers ask of a key that is not in ``names``."""
        if not self.layers:
            return ANYTHING
        return meet_all(layer.value(name) for layer in self.layers)

    def settled(self) -> ObjectShape:
        """Names that only the presence formula and choices mention get their place in ``names``."""
        mentioned = self.presence.names()
        if self.choices:
            mentioned = mentioned.union(*(choice.names() for choice in self.choices))
        missing = sorted(mentioned.difference(dict(self.names))) if mentioned else ()
        if not missing:
            return self
        return replace(self, names=self.names + tuple((name, self.other(name)) for name in missing))


TOP: Final = ObjectShape()


def with_presence(shape: ObjectShape, held: Presence) -> ObjectShape:
    return shape if shape.presence == held else replace(shape, presence=held)


def both(left: ObjectShape, right: ObjectShape) -> ObjectShape | None:
    if left == TOP:
        return right
    if right == TOP:
        return left
    held = presence.meet(left.presence, right.presence)
    if held is None:
        return None
    first, second = dict(left.names), dict(right.names)
    names = [(name, _also(value, second.get(name), right, name)) for name, value in left.names]
    names += [(name, _also(value, None, left, name)) for name, value in right.names if name not in first]
    need = held.unit.need
    if need and any(value == NEVER and name in need for name, value in names):
        return None
    return ObjectShape(
        names=tuple(names),
        layers=merged(left.layers | right.layers),
        exists=left.exists | right.exists,
        choices=left.choices | right.choices,
        presence=held,
        evaluated=left.evaluated | right.evaluated,
        declares=left.declares or right.declares,
        speaks=left.speaks or right.speaks,
    )


def _also(value: Value, own: Value | None, shape: ObjectShape, name: str) -> Value:
    """``value``, and what ``shape`` asks of ``name``, which is ``own`` where it names it."""
    other = shape.other(name) if own is None else own
    return meet(value, other) if other else value


def shown(shape: ObjectShape, inside: ObjectShape) -> list[ObjectShape]:
    """``shape``, where it only asks for some key of a kind, as the keys that ``inside``, which is closed, has."""
    if len(shape.exists) != 1 or replace(shape, exists=frozenset()) != TOP or not inside.is_closed:
        return [shape]
    (rule,) = shape.exists
    found = [(name, meet(value, rule.value)) for name, value in inside.names if matches(rule.keys, name)]
    return [
        ObjectShape(
            names=() if rule.value == ANYTHING else ((name, rule.value),), presence=presence.need([name])
        )
        for name, value in found
        if value != NEVER
    ]


def choice(shapes: Iterable[ObjectShape]) -> Choice | None:
    """One of ``shapes``, if each of them speaks of one key and one schema, or of presence without counts."""
    pairs: set[tuple[str, Value]] = set()
    terms: set[Term] = set()
    for shape in shapes:
        unit = shape.presence.unit
        if shape != ObjectShape(names=shape.names, presence=shape.presence) or len(shape.names) > 1:
            return None
        if shape.names:
            ((name, value),) = shape.names
            if shape.presence not in (presence.need([name]), FREE) or len(value) > 1:
                return None
            if value == ANYTHING:
                terms.add(Term(need=frozenset({name})))
            else:
                pairs.add((name, value))
            if shape.presence == FREE:  # wrong or missing
                terms.add(Term(forbid=frozenset({name})))
        elif not shape.presence.factors:
            terms.add(unit)
        elif unit.is_free and len(shape.presence.factors) == 1:
            terms |= next(iter(shape.presence.factors))
        else:
            return None
    if any(term.low or term.high is not None for term in terms):
        return None
    return Choice(frozenset(pairs), frozenset(terms))


def merged(layers: Iterable[Layer]) -> frozenset[Layer]:
    """Layers without patterns are one."""
    plain = ANYTHING
    out: set[Layer] = set()
    for layer in layers:
        if layer.patterns:
            out.add(layer)
        else:
            plain = meet(plain, layer.otherwise)
    if plain != ANYTHING:
        out.add(Layer(otherwise=plain))
    return frozenset(out)


def compact(shapes: Iterable[ObjectShape]) -> list[ObjectShape]:
    """Shapes that differ only in their presence formula become one."""
    grouped: dict[ObjectShape, list[Presence]] = {}
    for shape in shapes:
        held = grouped.setdefault(replace(shape, presence=FREE), [])
        for index, known in enumerate(held):
            joined = presence.join(known, shape.presence)
            if joined is not None:
                held[index] = joined
                break
        else:
            held.append(shape.presence)
    return [replace(shape, presence=item) for shape, held in grouped.items() for item in held]


def absorbed(shapes: list[ObjectShape], budget: Budget) -> list[ObjectShape]:
    """Without shapes that lie inside another one."""
    if not 1 < len(shapes) <= _MAX_COMPARED:
        return shapes
    out: list[_Compared] = []
    telling = ""
    for shape in sorted(shapes, key=_weight):
        budget.spend(len(out))
        inner = _Compared(shape, dict(shape.names), (shape.evaluated, shape.declares, shape.speaks))
        for outer in out:
            # a name that told two shapes apart tells the next ones apart too
            own = outer.values.get(telling)
            if own is not None and not own <= inner.values.get(telling, NEVER):
                continue
            found = _foreign(inner, outer)
            if found is None:
                break
            telling = found
        else:
            out.append(inner)
    return [item.shape for item in out]


def _weight(shape: ObjectShape) -> int:
    parts = len(shape.layers) + len(shape.exists) + len(shape.choices)
    return sum(len(value) for _, value in shape.names) + parts


@dataclass(frozen=True, slots=True)
class _Compared:
    shape: ObjectShape
    values: dict[str, Value]
    flags: tuple[Keys, bool, bool]


def _foreign(inner: _Compared, outer: _Compared) -> str | None:
    """``None`` only if every object of ``inner`` is one of ``outer``; else what tells them apart: a name, or no name."""
    first, second = inner.shape, outer.shape
    if not (second.layers <= first.layers and second.exists <= first.exists):
        return ""
    if not second.choices <= first.choices or inner.flags != outer.flags:
        return ""
    for name, value in second.names:
        if not value <= inner.values.get(name, NEVER):
            return name
    for name, value in first.names:
        if name not in outer.values and not second.other(name) <= value:
            return ""
    return None if presence.implies(first.presence, second.presence) else ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Keys that are not in ``names`` and share a value. declared: some ``patternProperties`` lists them."""

    keys: Lang
    value: Value
    declared: bool


def cells(shape: ObjectShape) -> list[Cell]:
    """The other keys as disjoint cells; none is empty, none has the value ``NEVER``. Raises ``RefusedError``."""
    if shape.is_closed:
        return []
    others = lang.negate(lang.words(name for name, _ in shape.names))
    regions = [others]
    for pattern in _patterns(shape):
        split = []
        for region in regions:
            parts = (lang.both(region, pattern), lang.both(region, lang.negate(pattern)))
            split += [part for part in parts if not is_empty(part)]
        regions = split
        if len(regions) > MAX_CELLS:
            raise RefusedError(
                f"patterns of keys overlap in more than {MAX_CELLS} ways",
                keyword="patternProperties",
                too_complex=True,
            )
    by_value: dict[tuple[Value, bool], list[Lang]] = {}
    for region in regions:
        value, declared = _region_value(shape, region)
        if value != NEVER:
            by_value.setdefault((value, declared), []).append(region)
    return [
        Cell(others if len(parts) == len(regions) else lang.alt(parts), value, declared)
        for (value, declared), parts in by_value.items()
    ]


def _patterns(shape: ObjectShape) -> Iterator[Lang]:
    seen: set[Lang] = set()
    for layer in sorted(shape.layers, key=repr) if len(shape.layers) > 1 else shape.layers:
        for pattern, _ in layer.patterns:
            if pattern not in seen and pattern != lang.ANY:
                seen.add(pattern)
                yield pattern


def _region_value(shape: ObjectShape, region: Lang) -> tuple[Value, bool]:
    """Every pattern holds for all of a region or for none of it."""
    out, declared = ANYTHING, False
    for layer in shape.layers:
        found = [value for pattern, value in layer.patterns if _covers(region, pattern)]
        out = meet(out, meet_all(found) if found else layer.otherwise)
        declared = declared or (layer.lists and bool(found))
    return out, declared


def _covers(region: Lang, pattern: Lang) -> bool:
    if pattern == lang.ANY:
        return True
    if isinstance(region, And) and (pattern in region.items or lang.negate(pattern) in region.items):
        return pattern in region.items
    return not is_empty(lang.both(region, pattern))
