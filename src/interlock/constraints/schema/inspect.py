"""Look at every reachable schema: are its keywords well formed, and who holds each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from interlock.constraints.schema.algebra.data import is_number
from interlock.constraints.schema.algebra.scalars import pattern_language
from interlock.constraints.schema.dialects import Dialect
from interlock.constraints.schema.graph import Graph, Schema
from interlock.constraints.schema.keywords import BY_NAME, Keyword
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems, RefusedError
from interlock.constraints.schema.report import Finding
from interlock.constraints.schema.resources import escape, subschemas
from interlock.constraints.schema.spelling import meant_keyword
from interlock.constraints.schema.text import formats

_TYPES = {"null", "boolean", "integer", "number", "string", "array", "object"}
_NEEDS = {
    "then": "if",
    "else": "if",
    "minContains": "contains",
    "maxContains": "contains",
    "additionalItems": "items",
}
_CONDITIONAL = frozenset({"format", "nullable", *_NEEDS})
"""Keywords that are only held beside others, or with an option."""


def inspect(graph: Graph, options: SchemaOptions, problems: Problems) -> list[Finding]:
    """Findings for every keyword that the root reaches; what is malformed goes to ``problems``."""
    out: list[Finding] = []
    pending, seen = [graph.root], {graph.root.number}
    while pending:
        schema = pending.pop()
        if not isinstance(schema.value, dict):
            if not isinstance(schema.value, bool):
                problems.add("a schema is an object or a boolean", pointer=schema.pointer)
            continue
        out += _findings(schema, options, problems)
        children = [child for child in _reached(graph, schema, problems) if child.number not in seen]
        seen.update(child.number for child in children)
        pending += reversed(children)  # in the order of the document
    return out


def _reached(graph: Graph, schema: Schema, problems: Problems) -> Iterator[Schema]:
    for name, step, value in subschemas(schema.value, schema.dialect):
        if name in schema.meant and BY_NAME[name].holder != "structure":
            if isinstance(value, (dict, bool)):
                yield graph.child(schema, value, step)
            else:
                problems.add("a schema is an object or a boolean", keyword=name, pointer=schema.pointer + step)
    try:
        yield from graph.references(schema)
    except RefusedError as refused:
        problems.add_refused(refused)


def _findings(schema: Schema, options: SchemaOptions, problems: Problems) -> list[Finding]:
    out: list[Finding] = []
    for name, value in schema.value.items():
        if name not in schema.meant:
            pointer = f"{schema.pointer}/{escape(name)}"
            out.append(Finding(pointer, name, "annotation", _why_ignored(schema, name)))
            continue
        row, fault, pointer = BY_NAME[name], _FAULTS[name], f"{schema.pointer}/{name}"
        reason = None if fault is None else fault(value, schema)
        if reason is not None:
            problems.add(reason, keyword=name, pointer=pointer)
            out.append(Finding(pointer, name, "refused", reason))
        elif name in _CONDITIONAL:
            out.append(_finding(schema, row, value, pointer, options))
        else:
            out.append(Finding(pointer, name, row.holder))
    return out


def _why_ignored(schema: Schema, name: str) -> str:
    row = BY_NAME.get(name)
    if row is None:
        meant = meant_keyword(name, schema.dialect)
        return f"unknown keyword '{name}', an annotation; did you mean '{meant}'?" if meant else ""
    if row.holder == "annotation":
        return ""
    if "$ref" in schema.value and schema.dialect.ref_hides_siblings:
        return f"'{name}' beside '$ref' has no meaning up to draft 7" if row.holder == "grammar" else ""
    return f"'{name}' is no keyword of this dialect" if row.holder == "grammar" else ""


def _finding(schema: Schema, row: Keyword, value: Any, pointer: str, options: SchemaOptions) -> Finding:
    if row.name == "format":
        if options.format_mode == "annotation":
            return Finding(pointer, "format", "annotation", "formats are annotations here")
        if formats.language(value) is None:
            return Finding(pointer, "format", "annotation", f"format '{value}' is not checked")
    needed = _NEEDS.get(row.name)
    if needed is not None and not schema.has(needed):
        return Finding(pointer, row.name, "annotation", f"'{row.name}' without '{needed}' says nothing")
    if row.name == "additionalItems" and not isinstance(schema.get("items"), list):
        return Finding(
            pointer, row.name, "annotation", "'additionalItems' without a list of 'items' says nothing"
        )
    if row.name == "nullable" and not options.nullable:
        return Finding(pointer, row.name, "annotation", "'nullable' is switched off")
    return Finding(pointer, row.name, row.holder)


def _bad_type(value: Any) -> str | None:
    if isinstance(value, str):
        return None if value in _TYPES else f"unknown type '{value}'"
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return "'type' is a string or a list of strings"
    unknown = [item for item in value if item not in _TYPES]
    return f"unknown type '{unknown[0]}'" if unknown else None


def _bad_limit(value: Any, *, draft4: bool) -> str | None:
    good = isinstance(value, bool) if draft4 else is_number(value)
    return None if good else f"expected a {'boolean' if draft4 else 'number'}"


def _is_names_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_count(value: Any) -> bool:
    if isinstance(value, (float, Decimal)):
        return value >= 0 and value == int(value)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "list": (lambda value: isinstance(value, list), "expected a list"),
    "schemas": (lambda value: isinstance(value, list) and bool(value), "expected a list of schemas, not empty"),
    "schema map": (lambda value: isinstance(value, dict), "expected an object"),
    "pattern map": (lambda value: isinstance(value, dict), "expected an object"),
    "schema or names map": (lambda value: isinstance(value, dict), "expected an object"),
    "names map": (_is_names_map, "expected an object of lists of names"),
    "names": (_is_names, "expected a list of strings"),
    "count": (_is_count, "expected a non-negative integer"),
    "number": (is_number, "expected a number"),
    "positive": (lambda value: is_number(value) and value > 0, "expected a number above 0"),
    "boolean": (lambda value: isinstance(value, bool), "expected true or false"),
    "string": (lambda value: isinstance(value, str), "expected a string"),
}
"""Kinds of values of keywords (see ``keywords.py``): a test, and what to say where it fails."""


def _bad_pattern(value: str, schema: Schema) -> str | None:
    try:
        pattern_language(value, schema.pointer, "pattern")
    except RefusedError as refused:
        return refused.reason
    return None


def _bad_patterns(value: dict[str, Any], schema: Schema) -> str | None:
    for pattern in value:
        reason = _bad_pattern(pattern, schema)
        if reason is not None:
            return f"'{pattern}': {reason}"
    return None


Fault = Callable[[Any, Schema], str | None]
"""What is wrong with the value of a keyword, ``None`` if nothing is."""


def _fault(row: Keyword) -> Fault | None:
    """``None``: any value will do."""
    if row.value == "type":
        return lambda value, _: _bad_type(value)
    if row.value == "number or boolean":
        return lambda value, schema: _bad_limit(value, draft4=schema.dialect == Dialect.DRAFT4)
    if row.value not in _EXPECTED:
        return None
    is_good, expected = _EXPECTED[row.value]
    if row.name == "pattern":
        return lambda value, schema: _bad_pattern(value, schema) if is_good(value) else expected
    if row.value == "pattern map":
        return lambda value, schema: _bad_patterns(value, schema) if is_good(value) else expected
    return lambda value, _: None if is_good(value) else expected


_FAULTS: Final = {name: _fault(row) for name, row in BY_NAME.items()}
