"""The report on one schema: what becomes of each keyword, sizes and times, a sample, and which documents pass.

``interlock check`` prints it and ``POST /v1/check`` answers with it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from interlock.constraints.check import SchemaCheck
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.constraints.engine_trial import refusal
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Provider
from interlock.constraints.schema import GUARDED, Compiled, SchemaOptions, compile_value, load_documents
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError, Problem


def schema_report(
    value: JsonValue,
    provider: Provider,
    tokenizer: Tokenizer,
    instances: Sequence[str] = (),
    documents: Mapping[str, str] = NO_DOCUMENTS,
    timed: Provider | None = None,
    *,
    options: SchemaOptions = GUARDED,
) -> dict[str, Any]:
    """JSON data: ``compiled``, ``report`` and ``instances``; where it compiled also sizes, times in ms and ``sample``.

    provider: over ``tokenizer``, in which every byte is a token. timed: the provider whose compile is timed, if not
    that one. documents: schemas that references may name, JSON text by URI. options: of the schema, beside these and what
    the value says. instances: JSON texts. A value in
    another syntax than JSON is looked at as JSON, but what only a guard holds is refused for it.
    Raises ``InterlockError`` for what is no JSON.
    """
    options = replace(options, documents=load_documents(documents))
    value = replace(value, syntax="json")
    begin = time.perf_counter()
    trial = partial(refusal, provider)
    compiled = compile_value(value, "j", options, trial=trial)
    lower_ms = _since(begin)
    rows = _rows(compiled)
    if compiled.problems:
        return _refused(rows, instances)
    begin = time.perf_counter()
    try:
        lowered = lower(ConstraintSpec(root=value), {}, options=options, trial=trial)
        (timed or provider).compile(lowered.grammar)
    except InterlockError as error:
        rows.append(_row(Problem(reason=error.message), "refused"))
        return _refused(rows, instances)
    compile_ms = _since(begin)
    checked = SchemaCheck(value, provider, tokenizer, documents, options)
    return {
        "compiled": True,
        "report": rows,
        "grammar_chars": len(compiled.lark),
        "grammar_rules": compiled.lark.count("\n"),
        "lower_ms": lower_ms,
        "compile_ms": compile_ms,
        "sample": checked.sample(),
        "instances": [_verdict(checked, text) for text in instances],
    }


def _refused(rows: list[dict[str, str]], instances: Sequence[str]) -> dict[str, Any]:
    verdict = {"accepted": False, "position": 0, "reason": "the schema is refused"}
    return {"compiled": False, "report": rows, "instances": [verdict.copy() for _ in instances]}


def _rows(compiled: Compiled) -> list[dict[str, str]]:
    problems = {(item.keyword, item.pointer): _row(item, "refused") for item in compiled.problems}
    found = {
        (item.keyword, item.pointer): {
            "keyword": item.keyword,
            "pointer": item.pointer,
            "state": item.status,
            "reason": item.reason,
        }
        for item in compiled.report.findings
    }
    return list((found | problems).values())


def _row(problem: Problem, state: str) -> dict[str, str]:
    return {
        "keyword": problem.keyword,
        "pointer": problem.pointer,
        "state": state,
        "reason": problem.reason,
    }


def _verdict(checked: SchemaCheck, text: str) -> dict[str, Any]:
    found = checked.verdict(text)
    return {"accepted": found.accepted, "position": found.position, "reason": found.reason}


def _since(begin: float) -> float:
    return round((time.perf_counter() - begin) * 1e3, 2)
