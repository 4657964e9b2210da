"""JSON Schema in its exact meaning, as Lark for llguidance, or an honest refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from interlock.constraints.schema.compile import Compiled, LoweringFactory, compile_schema
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.lower.syntax import JsonSyntax, json_syntax
from interlock.constraints.schema.options import GUARDED, SchemaOptions
from interlock.constraints.schema.relax import EngineTrial, compile_exact, compile_relaxed
from interlock.constraints.schema.report import Finding, SchemaReport
from interlock.core.constraint import JsonValue
from interlock.errors import InterlockError, Problem

__all__ = [
    "GUARDED",
    "Compiled",
    "EngineTrial",
    "Finding",
    "JsonSyntax",
    "SchemaGrammar",
    "SchemaOptions",
    "SchemaReport",
    "compile_schema",
    "compile_value",
    "json_syntax",
    "load_documents",
    "load_schema",
    "schema_grammar",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaGrammar:
    """start: name of the rule for the value. lark: rules and terminals, all named with the prefix.
    notes: what a caller should see. report: what became of each keyword. guards: what must be checked while
    generating, only with the option ``guards``. unenforced: what a relaxed schema leaves out."""

    start: str
    lark: str
    notes: tuple[str, ...]
    report: SchemaReport
    guards: GuardPlan | None = None
    unenforced: tuple[Problem, ...] = ()


def schema_grammar(
    value: JsonValue,
    prefix: str,
    *,
    options: SchemaOptions = GUARDED,
    lowering: LoweringFactory | None = None,
    trial: EngineTrial | None = None,
) -> SchemaGrammar:
    """The grammar of one ``JsonValue``. options: what the value itself does not say. lowering: for another syntax than
    JSON, see ``arguments.py``.
    trial: asks the engine; a relaxed value then loses what that does not take, too.

    Raises ``InterlockError`` ``invalid_schema`` with every problem.
    """
    compiled = compile_value(value, prefix, options, lowering, trial)
    if compiled.problems:
        raise _error(value, compiled.problems)
    return SchemaGrammar(
        start=compiled.start,
        lark=compiled.lark,
        notes=compiled.report.notes(),
        report=compiled.report,
        guards=compiled.guards,
        unenforced=_placed(value, compiled.unenforced),
    )


def compile_value(
    value: JsonValue,
    prefix: str,
    options: SchemaOptions,
    lowering: LoweringFactory | None = None,
    trial: EngineTrial | None = None,
) -> Compiled:
    """``compile_schema`` of a value, without what cannot be held if the value is relaxed. options: what the value itself
    does not say."""
    options = replace(options, open_objects=value.open_objects, property_order=value.property_order)
    syntax = json_syntax(value.item_separator, value.key_separator, flexible=value.flexible_whitespace)
    schema = load_schema(value.schema)

    def compile_part(part: Any) -> Compiled:
        return compile_schema(part, options, syntax, prefix, lowering=lowering)

    return (
        compile_relaxed(schema, compile_part, trial) if value.relaxed else compile_exact(schema, compile_part)
    )


def load_schema(text: str) -> Any:
    """Schema text to data; decimals stay exact. Raises ``InterlockError``."""
    try:
        data = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
        text.encode()
        if "\\u" in text:  # half a surrogate pair
            json.dumps(data, default=str, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = (
            "nested too deeply" if isinstance(error, RecursionError) else f"not JSON text in Unicode: {error}"
        )
        raise InterlockError(
            "invalid_schema", f"The schema is {reason}.", problems=(Problem(reason=reason),)
        ) from None
    return data


def load_documents(texts: Mapping[str, str]) -> dict[str, Any]:
    """Schemas that references may name, by URI; a fragment at its end says nothing. Raises ``InterlockError``."""
    return {uri.rstrip("#"): load_schema(text) for uri, text in texts.items()}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _error(value: JsonValue, problems: tuple[Problem, ...]) -> InterlockError:
    placed = _placed(value, problems)
    first = placed[0]
    where = f" of tool '{value.tool}'" if value.tool else ""
    keyword = f"'{first.keyword}'" if first.keyword else ""
    at = f"at '{first.pointer}'" if first.pointer else ""
    place = " ".join(filter(None, [keyword, at]))
    reason = f"{place}: {first.reason}" if place else first.reason
    more = f" (and {len(placed) - 1} more)" if len(placed) > 1 else ""
    return InterlockError(
        "invalid_schema",
        f"The schema{where} cannot be enforced: {reason}{more}.",
        param=value.origin or None,
        problems=placed,
    )


def _placed(value: JsonValue, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(replace(problem, tool=value.tool) for problem in problems)
