"""Positions of an array that need one of few values: what the items in front of them must leave."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from interlock.constraints.schema.guards.notation import Notation, value_text
from interlock.constraints.schema.guards.plan import Slots
from interlock.constraints.schema.guards.seen import Seen
from interlock.constraints.schema.guards.values import Canonical, array, number, object_, spelling
from interlock.constraints.schema.matching import matching

SlotValues = tuple[tuple[int, frozenset[Canonical]], ...]


class _Number(str):
    __slots__ = ()


@lru_cache(maxsize=256)
def slots_in(notation: Notation, slots: Slots) -> SlotValues:
    """``slots`` with the values as they are compared."""
    return tuple(
        (
            index,
            frozenset(
                _canonical(notation, json.loads(text, parse_int=_Number, parse_float=_Number)) for text in texts
            ),
        )
        for index, texts in slots
    )


def _canonical(notation: Notation, value: Any) -> Canonical:
    match value:
        case _Number():
            return number(value)
        case str():
            return value_text(notation, value, plain=spelling(value))
        case None | bool():
            return value_text(notation, value, plain=json.dumps(value).encode()).decode()
        case list():
            return array(_canonical(notation, one) for one in value)
        case _:
            return object_((key, _canonical(notation, one)) for key, one in value.items())


def reserved(slots: SlotValues, index: int, seen: Seen) -> frozenset[Canonical]:
    """The values that the item at ``index`` would take from the positions behind it."""
    later = [values.difference(seen) for position, values in slots if position > index]
    if not later:
        return frozenset()
    found = set()
    for value in frozenset[Canonical]().union(*later):
        if matching([values - {value} for values in later]) is None:
            found.add(value)
    return frozenset(found)
