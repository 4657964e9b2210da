"""Why a schema admits nothing: a smallest set of its keywords that contradict each other, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.graph import Graph, Schema, meet_all
from interlock.constraints.schema.keywords import BY_NAME
from interlock.constraints.schema.problems import RefusedError
from interlock.constraints.schema.resources import escape
from interlock.errors import Problem

_UNFOLDED = frozenset(["allOf", "$ref", "$dynamicRef", "$recursiveRef"])
_MAX_KEYWORDS = 60  # more of them are not tried one by one

Part = tuple[Schema, str]  # a keyword in its schema


def explain(graph: Graph, algebra: Algebra) -> Problem:
    """The problem to report for an unsatisfiable root."""
    schema = _innermost(graph, algebra)
    if not isinstance(schema.value, dict):
        place = f" at '{schema.pointer}'" if schema.pointer else ""
        return Problem(reason=f"no document is valid: the schema{place} is false", pointer=schema.pointer)
    found = [(part, name) for part in _in_place(graph, schema) for name in part.meant if _speaks(name)]
    left = _needed(graph, algebra, found) if len(found) <= _MAX_KEYWORDS else found[:1]
    if not left:
        return Problem(reason="no document is valid", pointer=schema.pointer)
    named = [f"'{name}' at '{_pointer(part, name)}'" for part, name in left]
    if len(left) == 1:
        return Problem(
            reason=f"no document is valid: {named[0]} admits nothing",
            keyword=left[0][1],
            pointer=_pointer(*left[0]),
        )
    return Problem(
        reason=f"no document is valid: {', '.join(named[:-1])} and {named[-1]} contradict each other",
        keyword=left[0][1],
        pointer=schema.pointer,
    )


def _pointer(schema: Schema, name: str) -> str:
    return f"{schema.pointer}/{escape(name)}"


def _innermost(graph: Graph, algebra: Algebra) -> Schema:
    """The root, or the value in it that must be there and cannot."""
    schema, seen = graph.root, {graph.root.number}
    while True:
        empty = (child for child in _compulsory(graph, schema) if child.number not in seen)
        child = next((child for child in empty if not _inhabited(graph, algebra, [child])), None)
        if child is None:
            return schema
        schema = child
        seen.add(schema.number)


def _compulsory(graph: Graph, schema: Schema) -> Iterator[Schema]:
    """Schemas of values that are in every object, or every array, of ``schema``."""
    parts = list(_in_place(graph, schema))
    required = {name for part in parts for name in part.get("required") or ()}
    num_items = max((int(part.get("minItems") or 0) for part in parts), default=0)
    for part in parts:
        yield from (child for name, child in graph.named(part, "properties").items() if name in required)
        listed = graph.children(part, "prefixItems") + graph.children(part, "items")
        yield from listed[:num_items]
        rest = graph.only(part, "items")
        if rest is not None and num_items > len(listed):
            yield rest


def _in_place(graph: Graph, schema: Schema) -> Iterator[Schema]:
    """``schema`` and what ``allOf`` and references add to it."""
    pending, seen = [schema], {schema.number}
    while pending:
        part = pending.pop(0)
        yield part
        for child in (*graph.references(part), *graph.children(part, "allOf")):
            if child.number not in seen:
                seen.add(child.number)
                pending.append(child)


def _speaks(name: str) -> bool:
    row = BY_NAME.get(name)
    return row is not None and row.holder not in ("structure", "annotation") and name not in _UNFOLDED


def _needed(graph: Graph, algebra: Algebra, parts: list[Part]) -> list[Part]:
    """Drop keywords one by one while what is left stays unsatisfiable."""
    kept = list(parts)
    for part in parts:
        fewer = [other for other in kept if other is not part]
        if not _inhabited(graph, algebra, _reduced(graph, fewer)):
            kept = fewer
    return kept


def _reduced(graph: Graph, parts: list[Part]) -> list[Schema]:
    """The schemas of ``parts`` with no other keywords."""
    values: dict[Schema, dict[str, object]] = {}
    for schema, name in parts:
        values.setdefault(schema, {})[name] = schema.value[name]
    return [graph.variant(schema, value) for schema, value in values.items()]


def _inhabited(graph: Graph, algebra: Algebra, schemas: list[Schema]) -> bool:
    """Some document is valid by all of them; so it is said of what is too complex."""
    try:
        return algebra.inhabited(meet_all(graph.value(schema) for schema in schemas))
    except RefusedError:
        return True
