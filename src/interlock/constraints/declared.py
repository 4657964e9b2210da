"""Keys and string constants that a spec declares: what a guess at the next tokens is made from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interlock.constraints.walk import distinct_texts
from interlock.core.constraint import Choice, JsonValue, Node

_MAX_LITERALS = 256
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_NO_SCHEMAS = ("enum", "const", "default", "examples", "required")


def declared_literals(root: Node) -> tuple[str, ...]:
    """In order of declaration, no duplicates, bounded in number and length."""
    return distinct_texts(root, _of_node, _MAX_LITERALS)


def required_keys(root: Node) -> tuple[str, ...]:
    """Names that some object must have, in order, no duplicates, bounded in number and length."""
    return distinct_texts(root, _required, _MAX_LITERALS)


def _required(node: Node) -> Iterator[str]:
    if isinstance(node, JsonValue):
        for part in _parts(json.loads(node.schema)):
            names = part.get("required")
            yield from (name for name in (names if isinstance(names, list) else ()) if isinstance(name, str))


def _of_node(node: Node) -> Iterator[str]:
    match node:
        case JsonValue(schema=schema):
            yield from _of_schema(json.loads(schema))
        case Choice(options=options):
            yield from options


def _of_schema(schema: Any) -> Iterator[str]:
    """An object's keys come together, before those of what is below it."""
    for part in _parts(schema):
        if isinstance(properties := part.get("properties"), dict):
            yield from properties
        yield from _constants(part)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """All schemas in it, outer ones first."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending.extend(reversed(part))
        elif isinstance(part, dict):
            yield part
            pending.extend(reversed([_below(keyword, value) for keyword, value in part.items()]))


def _below(keyword: str, value: Any) -> Any:
    """The schemas under a keyword, as one to look into."""
    if keyword in _MAPS and isinstance(value, dict):
        return list(value.values())
    return None if keyword in _NO_SCHEMAS else value


def _constants(schema: dict[str, Any]) -> Iterator[str]:
    values = schema.get("enum")
    for value in [*(values if isinstance(values, list) else []), schema.get("const")]:
        if isinstance(value, str):
            yield value
