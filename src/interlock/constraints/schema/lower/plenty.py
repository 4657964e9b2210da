"""Values of which there are more than any array can have items: where they may always come, nothing runs out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.algebra.arrays import ArrayShape
from interlock.constraints.schema.graph import Value
from interlock.constraints.schema.guards.plan import NO_ROOM, Room
from interlock.constraints.schema.guards.values import spelling
from interlock.constraints.schema.lower.object_keys import Keys
from interlock.constraints.schema.numbers.sets import NumberSet
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.text import chars, lang
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat, Words

_PLENTY = 40.0  # bits: as many items as that are never written
_ENDLESS = 1 << 60
_MAX_DOMAIN = 1_000
_ANY_CHAR = lang.one_of(chars.ALL)
_MAX_KEYS_IN_ANY_ORDER = 64


@dataclass(frozen=True, slots=True)
class ObjectPlaces:
    """keys: undeclared keys of very many names may always come. named: keys that may always come while they have not."""

    keys: bool = False
    named: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayPlaces:
    """rest: what each item may be. high: how many there may be. is_unique: if they differ."""

    rest: Value
    high: int | None
    is_unique: bool


@dataclass(slots=True)
class Places:
    """Of all shapes of one value; ``None`` for a shape of which nothing is known."""

    arrays: list[ArrayPlaces | None] = field(default_factory=list)
    objects: list[ObjectPlaces | None] = field(default_factory=list)


def object_places(keys: Keys, *, any_order: bool) -> ObjectPlaces | None:
    """Of objects about which nothing is asked but the presence of some keys."""
    if keys.exists or keys.choices or keys.counts:
        return None
    is_any = any_order and len(keys.named) <= _MAX_KEYS_IN_ANY_ORDER
    asked = {name for group in keys.groups for term in group for name in term.names()}
    if asked and not is_any:
        return None
    last = () if keys.others else keys.named[-1:]  # a later key leaves out all in front of it
    named = keys.named if is_any else last
    return ObjectPlaces(
        any(are_many(cell.keys) for cell in keys.others),
        tuple((name, value) for name, value in named if name not in asked),
    )


def are_many(words: Lang) -> bool:
    """It is easily told that there are more words than are ever written."""
    return _bits(words) >= _PLENTY


def array_places(shape: ArrayShape, algebra: Algebra) -> ArrayPlaces | None:
    if shape.contains or shape.repeats or shape.prefix or not algebra.inhabited(shape.rest):
        return None
    return ArrayPlaces(shape.rest, shape.high, shape.unique)


def rooms(places: Mapping[Value, Places], algebra: Algebra) -> dict[Value, tuple[Room, Room]]:
    """In the arrays and in the objects of each value: all that can be told, found in rounds."""
    known: dict[Value, tuple[Room, Room]] = {}
    simple: dict[Value, bool] = {}

    def has_members(value: Value) -> bool:
        _, objects = known.get(value, (NO_ROOM, NO_ROOM))
        return objects.keys or bool(objects.spare)

    def is_plenty(value: Value) -> bool:
        arrays, _ = known.get(value, (NO_ROOM, NO_ROOM))
        if arrays.items or has_members(value):
            return True
        if value not in simple:
            simple[value] = _has_many_scalars(value, algebra)
        return simple[value]

    def array_room(places: ArrayPlaces | None) -> Room:
        if places is None:
            return NO_ROOM
        if not is_plenty(places.rest):
            endless = not places.is_unique and places.high is None
            return Room(items=_ENDLESS if endless else 0, domain=_domain(places.rest, algebra))
        strings = _strings(places.rest, algebra)
        return Room(
            fresh=True,
            items=_ENDLESS if places.high is None else places.high,
            strings=_bits(strings) >= _PLENTY,
            text=isinstance(strings, Repeat) and strings.high is None and strings.item == _ANY_CHAR,
            members=has_members(places.rest),
        )

    while True:
        found = {
            value: (
                _common(array_room(one) for one in item.arrays),
                _common(_object_room(one, filter(is_plenty, _values(one))) for one in item.objects),
            )
            for value, item in places.items()
        }
        if found == known:
            return known
        known = found


def _domain(value: Value, algebra: Algebra) -> tuple[bytes, ...]:
    members = algebra.finite(value, _MAX_DOMAIN) or []
    if any(kind != "string" for kind, _ in members):
        return ()
    return tuple(sorted(spelling(text) for _, text in members))


def _values(places: ObjectPlaces | None) -> list[Value]:
    return [] if places is None else [value for _, value in places.named]


def _object_room(places: ObjectPlaces | None, plenty: Iterable[Value]) -> Room:
    if places is None:
        return NO_ROOM
    many = set(plenty)
    return Room(keys=places.keys, spare=frozenset(name for name, value in places.named if value in many))


def _common(rooms: Iterable[Room]) -> Room:
    out: Room | None = None
    for room in rooms:
        out = room if out is None else out & room
    return out or NO_ROOM


def _has_many_scalars(value: Value, algebra: Algebra) -> bool:
    if _bits(_strings(value, algebra)) >= _PLENTY:
        return True
    try:
        return _are_endless(algebra.scalars(value).numbers)
    except RefusedError:
        return False


def _strings(value: Value, algebra: Algebra) -> Lang:
    try:
        return algebra.scalars(value).strings
    except RefusedError:
        return lang.NONE


def _are_endless(numbers: NumberSet) -> bool:
    """Without a bound on one side."""
    return any((cell.low is None or cell.high is None) and not cell.nots for cell in numbers)


def _bits(words: Lang) -> float:
    """At least so many bits tell its words apart; 0 where that is not easily told."""
    match words:
        case Chars():
            return math.log2(sum(high - low + 1 for low, high in words.ranges))
        case Repeat(item=Chars() as item, high=high):
            return math.inf if high is None else high * _bits(item)
        case Cat(items=items) | Alt(items=items):
            return max(map(_bits, items))
        case Not(item=Words()):
            return math.inf
        case And(items=items):
            others = [one for one in items if not _leaves_out_few(one)]
            return math.inf if not others else _bits(others[0]) - 1 if len(others) == 1 else 0.0
        case _:
            return 0.0


def _leaves_out_few(words: Lang) -> bool:
    return isinstance(words, Not) and isinstance(words.item, Words)
