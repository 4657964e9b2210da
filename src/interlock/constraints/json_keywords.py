"""Keywords of JSON Schema: the form each value must have, and what llguidance's ``%json`` cannot enforce."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

SCHEMAS = frozenset(
    [
        "items",
        "additionalItems",
        "additionalProperties",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
SCHEMA_MAPS = frozenset(
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"]
)

FORMATS = frozenset(
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"]
)

_UNSUPPORTED = frozenset(
    [
        "not",
        "if",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
    ]
)
_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))


def _is_count(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _is_string_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, "must name one or more of the seven JSON types"),
    "enum": (_is_list, "must be a list of at least one value"),
    "required": (_is_string_list, "must be a list of strings"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "must be a number above 0"),
    "exclusiveMinimum": (lambda value: isinstance(value, int | float), "must be a number"),
    "exclusiveMaximum": (lambda value: isinstance(value, int | float), "must be a number"),
    "uniqueItems": (lambda value: isinstance(value, bool), "must be true or false"),
    "items": (lambda value: isinstance(value, dict | bool | list), "must be a schema"),
    **dict.fromkeys(("minimum", "maximum"), (_is_number, "must be a number")),
    **dict.fromkeys(("pattern", "format", "$ref"), (_is_string, "must be a string")),
    **dict.fromkeys(SCHEMA_LISTS - {"items"}, (_is_list, "must be a list of at least one schema")),
    **{name: (lambda value: isinstance(value, dict), "must be an object of schemas") for name in SCHEMA_MAPS},
    **dict.fromkeys(SCHEMAS - {"items"}, (_is_schema, "must be a schema")),
    **{
        f"{bound}{what}": (_is_count, "must be a whole number, at least 0")
        for bound in ("min", "max")
        for what in ("Length", "Items", "Properties", "Contains")
    },
}

# what the native compile says, and the keywords that its words are about
_SPOKEN = (
    (re.compile(r"min/maxProperties"), ("minProperties", "maxProperties")),
    (re.compile(r"oneOf constraints"), ("oneOf",)),
    (re.compile(r"patternPropert"), ("patternProperties",)),
    (re.compile(r"regex|pattern", re.IGNORECASE), ("pattern", "patternProperties")),
    (re.compile(r"Pointer|reference|Resource|\$ref"), ("$ref",)),
    (re.compile(r"minimum|maximum"), ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    (re.compile(r"multipleOf"), ("multipleOf",)),
)


def problem(keyword: str, value: Any, root: Any) -> str | None:
    """Why ``keyword: value`` is malformed or cannot be enforced; ``None`` if it is fine."""
    form = _FORMS.get(keyword)
    if form is not None and not form[0](value):
        return form[1]
    if keyword in _UNSUPPORTED or (keyword == "uniqueItems" and value):
        return "this keyword cannot be enforced"
    if keyword == "$ref":
        return _reference_problem(value, root)
    return None


def mentioned(reason: str) -> tuple[str, ...]:
    """Keywords a message of the native compile speaks of."""
    quoted = re.findall(r'Unimplemented keys: \["([^"]+)"', reason)
    return tuple(quoted) or next((keys for pattern, keys in _SPOKEN if pattern.search(reason)), ())


def concerns(keyword: str, value: Any, reason: str) -> bool:
    """Whether the message can be about this value: a pattern it quotes, else any."""
    if keyword == "pattern":
        return any(line.strip() == value for line in reason.splitlines())
    return True


def resolve(reference: str, root: Any) -> Any:
    """What a reference by JSON Pointer points to. Raises ``LookupError`` where there is nothing."""
    target = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = _unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict):
            target = target[key]
        elif isinstance(target, list) and key.isdigit():
            target = target[int(key)]
        else:
            raise LookupError(key)
    return target


def is_circular(node: Any, root: Any) -> bool:
    """Whether a value of ``node`` would have to be a value of ``node`` first, and nothing else is said."""
    return _is_circular(node, root, (), set())


def _is_circular(node: Any, root: Any, path: tuple[int, ...], clear: set[int]) -> bool:
    if not isinstance(node, dict) or id(node) in clear:
        return False
    if id(node) in path:
        return True
    path = (*path, id(node))
    reference = node.get("$ref", "")
    targets = [resolve(reference, root)] if reference == "#" or reference.startswith("#/") else []
    options = node.get("anyOf", [])
    circular = any(
        _is_circular(target, root, path, clear) for target in (*targets, *node.get("allOf", []))
    ) or (bool(options) and all(_is_circular(option, root, path, clear) for option in options))
    if not circular:
        clear.add(id(node))  # seen once is enough, or shared parts would be walked again and again
    return circular


def _reference_problem(reference: str, root: Any) -> str | None:
    if not reference.startswith("#"):
        return f"{reference!r}: only references inside the schema can be resolved"
    if reference != "#" and not reference.startswith("#/"):
        return None  # an anchor: the compile decides
    try:
        resolve(reference, root)
    except LookupError:
        return f"{reference!r}: there is no such place in the schema"
    return None


def _unquote(part: str) -> str:
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), part)
