"""One schema from JSON data to Lark: load, algebra, lower, report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock.constraints.schema.algebra.algebra import Algebra
from interlock.constraints.schema.contradiction import explain
from interlock.constraints.schema.graph import Graph
from interlock.constraints.schema.inspect import inspect
from interlock.constraints.schema.lower.syntax import ArgumentSyntax
from interlock.constraints.schema.lower.values import ValueLowering
from interlock.constraints.schema.lower.writer import Writer
from interlock.constraints.schema.options import SchemaOptions
from interlock.constraints.schema.problems import Problems, RefusedError
from interlock.constraints.schema.report import SchemaReport
from interlock.constraints.schema.resources import Library
from interlock.errors import Problem


@dataclass(frozen=True, slots=True)
class Compiled:
    """start, lark: the grammar, empty if there are ``problems``."""

    start: str
    lark: str
    report: SchemaReport
    problems: tuple[Problem, ...]


def compile_schema(schema: Any, options: SchemaOptions, syntax: ArgumentSyntax, prefix: str) -> Compiled:
    """Compile JSON data. Every rule name starts with ``prefix`` and every terminal with its upper case. Never
    raises for what a schema says: what cannot be enforced is in ``problems``, all of it at once."""
    problems = Problems()
    report = SchemaReport()
    try:
        graph = Graph(
            Library(schema, options.documents, options.limits.schema_depth, options.limits.schema_nodes)
        )
        report = SchemaReport(tuple(inspect(graph, options, problems)))
        if problems.found:
            return Compiled("", "", report, tuple(problems.found))
        return _lower(graph, options, syntax, prefix, problems, report)
    except RefusedError as refused:
        problems.add_refused(refused)
    except RecursionError:
        problems.add("the schema is nested too deeply")
    return Compiled("", "", report, tuple(problems.found))


def _lower(
    graph: Graph,
    options: SchemaOptions,
    syntax: ArgumentSyntax,
    prefix: str,
    problems: Problems,
    report: SchemaReport,
) -> Compiled:
    algebra = Algebra(graph, options)
    root = graph.value(graph.root)
    if not algebra.inhabited(root):
        problems.found.append(explain(graph, algebra))
        return Compiled("", "", report, tuple(problems.found))
    writer = Writer(prefix, options.limits)
    lowering = ValueLowering(algebra, writer, syntax, options, problems)
    start = writer.rule(lowering.lower(root))
    if problems.found:
        return Compiled("", "", report, tuple(problems.found))
    return Compiled(start, writer.text(), report, ())
