"""Which JSON types a schema allows: what decides how the raw text of a parameter is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from interlock.core.tools import Tool

ALL_KINDS = frozenset(("string", "number", "integer", "boolean", "null", "object", "array"))
_MAX_DEPTH = 40


class ToolTypes:
    """The parameters of the declared tools, by name."""

    def __init__(self, declared: Iterable[Tool]) -> None:
        self._declared = {tool.name: tool for tool in declared}
        self._roots: dict[str, SchemaTypes] = {}

    def __contains__(self, name: str) -> bool:
        """A tool of this name is declared."""
        return name in self._declared

    def __len__(self) -> int:
        return len(self._declared)

    def of(self, name: str | None) -> SchemaTypes:
        """What is known of the arguments of a tool; nothing for a name that no tool has."""
        if name is None or name not in self._declared:
            return SchemaTypes(True, True)
        if name not in self._roots:
            schema = self._declared[name].schema()
            self._roots[name] = SchemaTypes(schema, schema)
        return self._roots[name]


@dataclass(frozen=True)
class SchemaTypes:
    """A place in a schema."""

    schema: Any
    root: Any

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The JSON types a value here may have; ``integer`` is in it wherever ``number`` is."""
        return _kinds(self.schema, self.root, 0)

    def property(self, name: str) -> SchemaTypes:
        """The value of a key. Where several subschemas speak of it, all of them count."""
        found = [part for schema in _parts(self.schema, self.root, 0) for part in _property(schema, name)]
        return self._at(found)

    def item(self) -> SchemaTypes:
        """An item of an array."""
        found = []
        for schema in _parts(self.schema, self.root, 0):
            found += [schema[key] for key in ("items", "additionalItems") if key in schema]
            found += schema.get("prefixItems", []) if isinstance(schema.get("prefixItems"), list) else []
        return self._at(
            [part for schema in found for part in (schema if isinstance(schema, list) else [schema])]
        )

    def _at(self, found: list[Any]) -> SchemaTypes:
        if not found:
            return SchemaTypes(True, self.root)
        return SchemaTypes(found[0] if len(found) == 1 else {"anyOf": found}, self.root)


def _property(schema: Mapping[str, Any], name: str) -> list[Any]:
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    found = []
    if isinstance(properties, dict) and name in properties:
        found.append(properties[name])
    for pattern, part in patterns.items() if isinstance(patterns, dict) else ():
        if _matches(pattern, name):
            found.append(part)
    extra = schema.get("additionalProperties")
    if not found and isinstance(extra, dict):
        found.append(extra)
    return found


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _parts(schema: Any, root: Any, depth: int) -> Iterable[Mapping[str, Any]]:
    """``schema`` and all it is made of."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return
    yield schema
    for key in ("allOf", "anyOf", "oneOf"):
        options = schema.get(key)
        for option in options if isinstance(options, list) else ():
            yield from _parts(option, root, depth + 1)
    for key in ("then", "else"):
        yield from _parts(schema.get(key), root, depth + 1)
    if "$ref" in schema:
        yield from _parts(_resolve(schema["$ref"], root), root, depth + 1)


def _kinds(schema: Any, root: Any, depth: int) -> frozenset[str]:
    if schema is False:
        return frozenset()
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return ALL_KINDS
    kinds = ALL_KINDS
    if "type" in schema:
        kinds &= _declared(schema["type"])
        if schema.get("nullable") is True:
            kinds |= {"null"}
    for values in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if isinstance(values, list):
            kinds &= frozenset().union(*(kinds_of(value) for value in values))
    if "$ref" in schema:
        kinds &= _kinds(_resolve(schema["$ref"], root), root, depth + 1)
    for option in schema.get("allOf") or ():
        kinds &= _kinds(option, root, depth + 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            kinds &= frozenset().union(*(_kinds(option, root, depth + 1) for option in schema[key]))
    return kinds


def _declared(types: Any) -> frozenset[str]:
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    known = frozenset(name for name in names if isinstance(name, str)) & ALL_KINDS
    return known | {"integer"} if "number" in known else known


def kinds_of(value: Any) -> frozenset[str]:
    """The types of a JSON value."""
    match value:
        case None:
            return frozenset(("null",))
        case bool():
            return frozenset(("boolean",))
        case int():
            return frozenset(("integer", "number"))
        case float():
            return frozenset(("integer", "number") if value.is_integer() else ("number",))
        case str():
            return frozenset(("string",))
        case dict():
            return frozenset(("object",))
        case _:
            return frozenset(("array",))


def _resolve(reference: Any, root: Any) -> Any:
    """The target of a reference inside the document; anything for another."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return True
    here = root
    for step in filter(None, reference[1:].split("/")):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and key.isdigit() and int(key) < len(here):
            here = here[int(key)]
        else:
            return True
    return here
