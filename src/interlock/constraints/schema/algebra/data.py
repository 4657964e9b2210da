"""JSON data in schemas: ``const`` and ``enum``."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from interlock.constraints.schema.numbers.sets import fraction


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def scalar_points(values: Iterable[Any]) -> tuple[bool, frozenset[bool], set[Fraction], set[str]]:
    """The scalars among ``values``: null, booleans, numbers, strings."""
    null = False
    bools: set[bool] = set()
    numbers: set[Fraction] = set()
    strings: set[str] = set()
    for value in values:
        if value is None:
            null = True
        elif isinstance(value, bool):
            bools.add(value)
        elif isinstance(value, str):
            strings.add(value)
        elif is_number(value):
            numbers.add(fraction(value))
    return null, frozenset(bools), numbers, strings


def as_schema(value: Any) -> dict[str, Any]:
    """A schema of exactly one array or object, one level deep."""
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {key: {"const": item} for key, item in value.items()},
            "required": list(value),
            "additionalProperties": False,
        }
    return {
        "type": "array",
        "prefixItems": [{"const": item} for item in value],
        "minItems": len(value),
        "maxItems": len(value),
    }
