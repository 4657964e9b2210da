"""Why a schema admits nothing: a smallest set of its keywords that contradict each other."""

from __future__ import annotations

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.graph import Graph, Schema
from interlock.constraints.schema.keywords import BY_NAME
from interlock.constraints.schema.problems import RefusedError
from interlock.errors import Problem


def explain(graph: Graph, algebra: Algebra) -> Problem:
    """The problem to report for an unsatisfiable root."""
    schema = graph.root
    if not isinstance(schema.value, dict):
        return Problem(reason="no document is valid: the schema is false", pointer=schema.pointer)
    left = _needed(graph, algebra, schema, [name for name in schema.value if _speaks(schema, name)])
    if len(left) == 1:
        name = left[0]
        return Problem(
            reason=f"no document is valid: '{name}' admits nothing", keyword=name, pointer=f"/{name}"
        )
    named = ", ".join(f"'{name}'" for name in left)
    return Problem(
        reason=f"no document is valid: {named} contradict each other",
        keyword=left[0] if left else "",
        pointer=schema.pointer,
    )


def _speaks(schema: Schema, name: str) -> bool:
    row = BY_NAME.get(name)
    return schema.has(name) and row is not None and (row.holder != "structure" or name.endswith("ef"))


def _needed(graph: Graph, algebra: Algebra, schema: Schema, names: list[str]) -> list[str]:
    """Drop keywords one by one while what is left stays unsatisfiable."""
    kept = list(names)
    for name in names:
        fewer = [other for other in kept if other != name]
        structure = {k: v for k, v in schema.value.items() if k not in names}
        trial = {**structure, **{other: schema.value[other] for other in fewer}}
        try:
            empty = not algebra.inhabited(graph.value(graph.variant(schema, trial)))
        except RefusedError:
            continue
        if empty:
            kept = fewer
    return kept
