"""JSON in and out with nothing lost: key order is kept, and numbers keep their spelling.

``loads`` gives numbers that are ordinary ``int`` and ``float`` objects to a template, but print as they were
written: ``1.0``, ``1e400`` and a hundred digits all come back unchanged from ``dumps``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Self

_MAX_DIGITS = 4000  # CPython refuses to convert much longer texts to int


class JsonInt(int):
    """An integer that prints as it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


class JsonFloat(float):
    """A number that prints as it was written. Its value is the nearest double, infinite if there is none."""

    text: str

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def loads(text: str) -> Any:
    """Parse JSON text. Raises ``ValueError`` for anything that is not JSON, ``NaN`` included."""
    return json.loads(text, parse_int=_integer, parse_float=JsonFloat, parse_constant=_no_constant)


def _integer(text: str) -> JsonInt | JsonFloat:
    return JsonInt(text) if len(text) <= _MAX_DIGITS else JsonFloat(text)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def dumps(
    value: Any,
    *,
    item_separator: str = ", ",
    key_separator: str = ": ",
    indent: str | None = None,
    sort_keys: bool = False,
    string: Callable[[str], str] | None = None,
) -> str:
    """``value`` as JSON text, laid out as the standard library does it, non-ASCII text unescaped.

    indent: one level of indentation; every item is on a line of its own then. string: prints a string, quotes
    included. Raises ``TypeError`` for what JSON cannot hold.
    """
    layout = _Layout(item_separator, key_separator, indent, sort_keys, string or quote)
    parts: list[str] = []
    _write(value, layout, "\n", parts)
    return "".join(parts)


def quote(text: str) -> str:
    """``text`` as a JSON string."""
    return encode_basestring(text)


def escape(text: str) -> str:
    """``text`` as it stands inside a JSON string."""
    return encode_basestring(text)[1:-1]


@dataclass(frozen=True, slots=True)
class _Layout:
    item_separator: str
    key_separator: str
    indent: str | None
    sort_keys: bool
    string: Callable[[str], str]


def _write(value: Any, layout: _Layout, line: str, parts: list[str]) -> None:
    match value:
        case str():
            parts.append(layout.string(value))
        case dict():
            items = sorted(value.items()) if layout.sort_keys else value.items()
            members = [(layout.string(_key(key)) + layout.key_separator, item) for key, item in items]
            _write_items("{}", members, layout, line, parts)
        case list() | tuple():
            _write_items("[]", [("", item) for item in value], layout, line, parts)
        case JsonInt() | JsonFloat():
            parts.append(value.text)
        case _:
            parts.append(json.dumps(value))


def _write_items(
    brackets: str, items: list[tuple[str, Any]], layout: _Layout, line: str, parts: list[str]
) -> None:
    inner = line + layout.indent if layout.indent is not None else ""
    parts.append(brackets[0])
    for position, (head, item) in enumerate(items):
        parts.append((layout.item_separator if position else "") + inner + head)
        _write(item, layout, inner, parts)
    parts.append((line if layout.indent is not None and items else "") + brackets[1])


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, int | float):
        return str(key) if isinstance(key, JsonInt | JsonFloat) else json.dumps(key)
    raise TypeError(f"a JSON object cannot have a key of type {type(key).__name__}")
