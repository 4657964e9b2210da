"""One schema from JSON data to Lark: load, algebra, lower, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.contradiction import explain
from interlock.constraints.schema.graph import Graph
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.inspect import inspect
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.values import ValueLowering
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems, RefusedError
from interlock.constraints.schema.report import SchemaReport
from interlock.constraints.schema.resources import Library
from interlock.errors import Problem

LoweringFactory = Callable[[Algebra, Writer, SchemaOptions, Problems], ValueLowering]
"""Makes what writes the rules of values."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """start, lark: the grammar, empty if there are ``problems``. guards: what must be checked beside it.
    is_contradiction: the problem is that no document is valid. unenforced: see ``relax.py``."""

    start: str
    lark: str
    report: SchemaReport
    problems: tuple[Problem, ...]
    guards: GuardPlan | None = None
    is_contradiction: bool = False
    unenforced: tuple[Problem, ...] = ()


def compile_schema(
    schema: Any,
    options: SchemaOptions,
    syntax: ArgumentSyntax,
    prefix: str,
    *,
    lowering: LoweringFactory | None = None,
) -> Compiled:
    """Compile JSON data. Every rule name starts with ``prefix`` and every terminal with its upper case. Never
    raises for what a schema says: what cannot be enforced is in ``problems``, all of it at once.
    lowering: for values that are not written in one ``syntax`` throughout."""
    problems = Problems()
    report = SchemaReport()
    try:
        graph = Graph(Library(schema, options.documents))
        report = SchemaReport(tuple(inspect(graph, options, problems)))
        if problems.found:
            return Compiled("", "", report, tuple(problems.found))
        make = lowering or (
            lambda algebra, writer, options, problems: ValueLowering(algebra, writer, syntax, options, problems)
        )
        return _lower(graph, options, make, prefix, problems, report, is_json=lowering is None)
    except RefusedError as refused:
        problems.add_refused(refused)
    except RecursionError:
        problems.add("the schema is nested too deeply")
    return Compiled("", "", report, tuple(problems.found))


def _lower(
    graph: Graph,
    options: SchemaOptions,
    make: LoweringFactory,
    prefix: str,
    problems: Problems,
    report: SchemaReport,
    *,
    is_json: bool,
) -> Compiled:
    algebra = Algebra(graph, options)
    root = graph.value(graph.root)
    if not algebra.inhabited(root):
        problems.found.append(explain(graph, algebra))
        return Compiled("", "", report, tuple(problems.found), is_contradiction=True)
    writer = Writer(prefix)
    lowering = make(algebra, writer, options, problems)
    start = writer.rule(lowering.lower(root))
    if problems.found:
        return Compiled("", "", report, tuple(problems.found))
    guards = lowering.recorder.plan(root, lowering.algebra, is_json=is_json)
    has_items = guards is not None and guards.has_items
    return Compiled(writer.resolve(start), writer.text(), report.guarded() if has_items else report, (), guards)
