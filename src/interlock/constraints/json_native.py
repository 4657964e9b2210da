"""JSON Schema by llguidance's own strict ``%json``: what it cannot enforce is refused, all of it at once.

The schema compiler replaces this module behind the same function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from interlock.constraints import json_keywords
from interlock.core.constraint import JsonValue
from interlock.errors import InterlockError, Problem

MAX_DEPTH = 100
_WHITESPACE = r"[ \n\t]{1,8}"
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
# keywords whose presence changes what closing an object would mean
_APPLICATORS = ("allOf", "anyOf", "oneOf", "$ref", "patternProperties")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSchema:
    """A schema as one Lark rule ``start: %json {...}``."""

    start: str
    lark: str
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Findings:
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def schema_grammar(value: JsonValue, prefix: str) -> NativeSchema:
    """Lower one schema to a rule named ``prefix``.

    Property order ``any`` gives declared order, which is a subset. Raises ``InterlockError``:
    ``invalid_schema`` with a problem for every keyword that is malformed or cannot be enforced,
    ``constraint_too_complex`` for one nested too deeply.
    """
    schema = load(value)
    findings = _Findings()
    for pointer, node in subschemas(schema):
        _check(node, pointer, schema, findings, value)
    if not findings.problems:
        findings.problems += _circles(schema, value)
    if findings.problems:
        raise invalid_schema(value, tuple(findings.problems))
    if not value.open_objects:
        _close_objects(schema, close_definitions=not _merges_references(schema))
    body = dict(schema) if isinstance(schema, dict) else {}
    body["x-guidance"] = _spacing(value)
    return NativeSchema(start=prefix, lark=f"{prefix}: %json {json.dumps(body)}\n", notes=tuple(findings.notes))


def load(value: JsonValue) -> Any:
    """The parsed schema. Raises ``InterlockError`` when it is no JSON, no schema, or too deep."""
    depth = deepest = 0
    for match in _BRACKETS.finditer(value.schema):
        bracket = match.group()
        depth += (bracket in "[{") - (bracket in "]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise InterlockError(
            "constraint_too_complex",
            f"the schema is nested {deepest} deep; at most {MAX_DEPTH} levels are supported",
            param=value.origin or None,
        )
    try:
        schema = json.loads(value.schema, parse_constant=_no_constant)
    except ValueError as exc:
        raise invalid_schema(value, (Problem(reason=f"not valid JSON: {exc}", tool=value.tool),)) from None
    if not isinstance(schema, dict | bool):
        raise invalid_schema(value, (Problem(reason="a schema is an object or a boolean", tool=value.tool),))
    return schema


def invalid_schema(value: JsonValue, problems: tuple[Problem, ...]) -> InterlockError:
    """The refusal of a schema, naming the first problem and counting the others."""
    first = problems[0]
    where = f" at {first.pointer or '/'}" if first.keyword or first.pointer else ""
    keyword = f"{first.keyword!r}{where}: " if first.keyword else (f"{where.strip()}: " if where else "")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    owner = f"tool {value.tool!r}: " if value.tool else ""
    return InterlockError(
        "invalid_schema",
        f"{owner}the schema cannot be enforced: {keyword}{first.reason}{more}",
        param=value.origin or None,
        problems=problems,
    )


def explain(value: JsonValue, message: str) -> InterlockError:
    """The refusal for an error of the native compile, with the pointers of the keywords it speaks of."""
    reason = message.removeprefix("failed to compile JSON schema: ")
    keywords = json_keywords.mentioned(reason)
    found = [
        Problem(reason=reason, keyword=keyword, pointer=f"{pointer}/{_escape(keyword)}", tool=value.tool)
        for pointer, node in subschemas(load(value))
        if isinstance(node, dict)
        for keyword in keywords
        if keyword in node and json_keywords.concerns(keyword, node[keyword], reason)
    ]
    return invalid_schema(value, tuple(found) or (Problem(reason=reason, tool=value.tool),))


def subschemas(schema: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Every schema in ``schema``, itself first, with its JSON Pointer."""
    yield pointer, schema
    if not isinstance(schema, dict):
        return
    for keyword, item in schema.items():
        at = f"{pointer}/{_escape(keyword)}"
        if keyword in json_keywords.SCHEMA_MAPS and isinstance(item, dict):
            for name, child in item.items():
                if keyword != "dependencies" or not isinstance(child, list):
                    yield from subschemas(child, f"{at}/{_escape(name)}")
        elif keyword in json_keywords.SCHEMA_LISTS and isinstance(item, list):
            for index, child in enumerate(item):
                yield from subschemas(child, f"{at}/{index}")
        elif keyword in json_keywords.SCHEMAS and isinstance(item, dict | bool):
            yield from subschemas(item, at)


def _check(node: Any, pointer: str, root: Any, findings: _Findings, value: JsonValue) -> None:
    if not isinstance(node, dict):
        if node is False and not pointer:
            findings.problems.append(Problem(reason="false matches nothing", tool=value.tool))
        elif not isinstance(node, bool):
            findings.problems.append(
                Problem(reason="a schema is an object or a boolean", pointer=pointer, tool=value.tool)
            )
        return
    for keyword in list(node):
        reason = json_keywords.problem(keyword, node[keyword], root)
        at = f"{pointer}/{_escape(keyword)}"
        if reason:
            findings.problems.append(Problem(reason=reason, keyword=keyword, pointer=at, tool=value.tool))
        elif keyword == "format" and node[keyword] not in json_keywords.FORMATS:
            findings.notes.append(f"format {json.dumps(node[keyword])} at {at} is an annotation")
            del node[keyword]
        elif (keyword == "uniqueItems" and node[keyword] is False) or keyword == "x-guidance":
            del node[keyword]


def _circles(schema: Any, value: JsonValue) -> list[Problem]:
    return [
        Problem(reason="it refers only to itself", keyword="$ref", pointer=f"{pointer}/$ref", tool=value.tool)
        for pointer, node in subschemas(schema)
        if isinstance(node, dict) and "$ref" in node and json_keywords.is_circular(node, schema)
    ]


def _close_objects(node: Any, *, close_definitions: bool) -> None:
    """Forbid undeclared keys where an object declares properties and says nothing of others.

    Only where nothing else is merged into the object: closing is then what callers mean, and a subset.
    """
    if not isinstance(node, dict):
        return
    merged = any(keyword in node for keyword in _APPLICATORS)
    if "properties" in node and "additionalProperties" not in node and not merged:
        node["additionalProperties"] = False
    children = [*node.get("properties", {}).values(), *node.get("prefixItems", [])]
    items = node.get("items")
    children += items if isinstance(items, list) else [items]
    if "properties" not in node and "patternProperties" not in node and "allOf" not in node:
        children += node.get("anyOf", [])
    if close_definitions:
        children += [child for keyword in ("$defs", "definitions") for child in node.get(keyword, {}).values()]
    for child in children:
        _close_objects(child, close_definitions=close_definitions)


def _merges_references(schema: Any) -> bool:
    """Whether a ``$ref`` may be merged with something else, so that its target must stay open."""
    for pointer, node in subschemas(schema):
        if isinstance(node, dict) and "$ref" in node:
            in_merge = re.search(r"/(allOf|oneOf|anyOf)/\d+$", pointer)
            if in_merge or "properties" in node or "patternProperties" in node or "allOf" in node:
                return True
    return False


def _spacing(value: JsonValue) -> dict[str, Any]:
    if value.flexible_whitespace:
        return {"whitespace_flexible": True, "whitespace_pattern": _WHITESPACE}
    return {
        "whitespace_flexible": False,
        "item_separator": value.item_separator,
        "key_separator": value.key_separator,
    }


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
