"""Relaxed schemas: what cannot be held is left out, keyword by keyword, and each of them is named.

What is left out only ever widens the language: a keyword under one that turns its meaning around (``not``, ``if``,
a counted ``contains``) is left out with that one, and ``oneOf`` around it becomes ``anyOf``. A malformed schema, a
contradiction and a reference that leads nowhere stay refused: nobody could check the document afterwards.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import jsonschema

from interlock.constraints.schema.compile import Compiled
from interlock.constraints.schema.dialects import Dialect, from_uri
from interlock.constraints.schema.keywords import BY_NAME
from interlock.constraints.schema.report import Finding, SchemaReport
from interlock.constraints.schema.resources import escape, subschemas
from interlock.errors import Problem

_MAX_ROUNDS = 12
_LOOSENED = "; held as anyOf"
_TURNING = frozenset({"not", "if", "contains"})
_MAPS = frozenset({"schema map", "pattern map", "schema or names map"})
_LISTS = frozenset({"schemas", "schema or schemas"})
_STAGES: tuple[frozenset[str], ...] = (
    frozenset(
        {"not", "if", "contains", "unevaluatedProperties", "unevaluatedItems", "dependentSchemas", "dependencies",
         "uniqueItems", "propertyNames"}
    ),
    frozenset({"oneOf", "anyOf", "allOf", "pattern", "patternProperties", "multipleOf", "minProperties", "maxProperties"}),
)  # fmt: skip
"""What goes, all at once, where a schema as a whole is too complex."""
_LEXICAL = frozenset({"pattern", "multipleOf"})
"""What goes before all that where it is the engine that finds it so: long terminals take its fuel."""

EngineTrial = Callable[[str], str]
"""Why the grammar engine does not take a grammar, "" if it does."""


def compile_relaxed(
    schema: Any, compile_part: Callable[[Any], Compiled], trial: EngineTrial | None = None
) -> Compiled:
    """Compile ``schema`` without what cannot be held, here or, with a ``trial``, by the engine. ``problems`` are left
    only where that does not help."""
    if trial is None:
        compiled, part = _reduced(schema, compile_part, _STAGES)
    else:
        compiled, part = _reduced_for(trial, schema, compile_part)
    if compiled.problems or not part.left_out:
        return compiled
    unenforced = tuple({(item.keyword, item.pointer): item for item in part.left_out}.values())
    findings = tuple(Finding(item.pointer, item.keyword, "unenforced", item.reason) for item in unenforced)
    report = SchemaReport((*compiled.report.findings, *findings))
    return replace(compiled, report=report, unenforced=unenforced)


def _reduced_for(
    trial: EngineTrial, schema: Any, compile_part: Callable[[Any], Compiled]
) -> tuple[Compiled, _Part]:
    def compile_and_try(part: Any) -> Compiled:
        return _tried(compile_part(part), trial)

    compiled, part = _reduced(schema, compile_and_try, (_LEXICAL, *_STAGES))
    if compiled.is_contradiction:  # a definition that lost its patterns is used in a negation
        return _reduced(schema, compile_and_try, _STAGES)
    return compiled, part


def _tried(compiled: Compiled, trial: EngineTrial) -> Compiled:
    if compiled.problems:
        return compiled
    reason = trial(f"start: {compiled.start}\n{compiled.lark}")
    return replace(compiled, problems=(Problem(reason=reason),)) if reason else compiled


def compile_exact(schema: Any, compile_part: Callable[[Any], Compiled]) -> Compiled:
    """Compile all of ``schema``. Where that fails, the problems are also those that show without the first ones."""
    compiled = compile_part(schema)
    if not compiled.problems:
        return compiled
    _, part = _reduced(schema, compile_part, (), compiled)
    known = {(problem.keyword, problem.pointer) for problem in compiled.problems}
    more = [item for item in dict.fromkeys(part.left_out) if (item.keyword, item.pointer) not in known]
    further = tuple(item for item in more if not item.reason.endswith(_LOOSENED))
    return replace(compiled, problems=compiled.problems + further)


def _reduced(
    schema: Any,
    compile_part: Callable[[Any], Compiled],
    stages: Sequence[frozenset[str]],
    compiled: Compiled | None = None,
) -> tuple[Compiled, _Part]:
    """Compile, leave out what is refused, and again. compiled: the first result, if it is known."""
    compiled, part = compiled or compile_part(schema), _Part(schema)
    if not compiled.problems or not _is_well_formed(schema):
        return compiled, part
    left = iter(stages)
    for _ in range(_MAX_ROUNDS):
        if not compiled.problems or compiled.is_contradiction:
            break
        taken = [part.leave_out(problem) for problem in compiled.problems]
        if not any(taken):
            stage = next(left, None)
            if stage is None or any(_is_reference(problem) for problem in compiled.problems):
                break
            part.leave_out_all(stage, compiled.problems[0].reason)
        compiled = compile_part(part.schema)
    return compiled, part


class _Part:
    """A copy of a schema that gets smaller. left_out: what has gone, by its place in the schema as it was."""

    def __init__(self, schema: Any) -> None:
        self.schema = copy.deepcopy(schema)
        self.left_out: list[Problem] = []
        self._loosened: list[list[str]] = []  # paths to an ``anyOf`` that was a ``oneOf``

    def leave_out(self, problem: Problem) -> bool:
        """Take the keyword of ``problem`` out; whether there was something to take."""
        steps = None if not problem.keyword or _is_reference(problem) else self._place(problem)
        if steps is None:
            return False
        chain = [index for index in _keywords(steps) if index < len(steps) - 1]
        outer = next((index for index in chain if steps[index] in _TURNING), len(steps) - 1)
        steps = steps[: outer + 1]
        for index in chain:
            if index < outer and steps[index] == "oneOf":
                if not self._loosen(steps[:index], f"a branch of it is not held: {problem.reason}"):
                    return self._remove(steps[:index], "oneOf", problem.reason)
                steps[index] = "anyOf"
        if steps[-1] == "oneOf" and self._loosen(steps[:-1], problem.reason):
            return True
        return self._remove(steps[:-1], steps[-1], problem.reason)

    def leave_out_all(self, names: frozenset[str], reason: str) -> None:
        """Take these keywords out of every schema below."""
        while found := self._places(names):  # what is loosened on the way has another place
            for pointer, name in found:
                self.leave_out(Problem(reason=reason, keyword=name, pointer=f"{pointer}/{name}"))

    def _places(self, names: frozenset[str]) -> list[tuple[str, str]]:
        uri = self.schema.get("$schema") if isinstance(self.schema, dict) else None
        dialect = from_uri(uri) or Dialect.DRAFT2020
        found, pending = [], [("", self.schema)]
        while pending:
            pointer, part = pending.pop()
            if isinstance(part, dict):
                found += [(pointer, name) for name in part if name in names]
                pending += [(pointer + step, child) for _, step, child in subschemas(part, dialect)]
        return found

    def _remove(self, path: list[str], keyword: str, reason: str) -> bool:
        del _at(self.schema, path)[keyword]
        self._tell([*path, keyword], reason)
        return True

    def _loosen(self, path: list[str], reason: str) -> bool:
        """Turn the ``oneOf`` of a schema into ``anyOf``, if there is none yet."""
        parent = _at(self.schema, path)
        if "anyOf" in parent:
            return False
        self._tell([*path, "oneOf"], reason + _LOOSENED)
        parent["anyOf"] = parent.pop("oneOf")
        self._loosened.append([*path, "anyOf"])
        return True

    def _tell(self, steps: list[str], reason: str) -> None:
        steps = list(steps)
        for loosened in self._loosened:
            if steps[: len(loosened)] == loosened:
                steps[len(loosened) - 1] = "oneOf"
        pointer = "".join(f"/{escape(step)}" for step in steps)
        self.left_out.append(Problem(reason=reason, keyword=steps[-1], pointer=pointer))

    def _place(self, problem: Problem) -> list[str] | None:
        """Steps to the keyword; a problem's pointer is its own or that of the schema around it."""
        steps = _steps(problem.pointer)
        for place in ([*steps, problem.keyword], steps):
            around = _at(self.schema, place[:-1]) if place and place[-1] == problem.keyword else None
            if isinstance(around, dict) and problem.keyword in around:
                return list(place)
        return None


def _is_well_formed(schema: Any) -> bool:
    if not isinstance(schema, (dict, bool)):
        return False
    kind: Any = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema, format_checker=jsonschema.FormatChecker(()))
    except jsonschema.SchemaError:
        return False
    return True


def _is_reference(problem: Problem) -> bool:
    row = BY_NAME.get(problem.keyword)
    return row is not None and row.holder == "structure"


def _keywords(steps: list[str]) -> Iterator[int]:
    """Which of the steps are keywords, and not names or indices under one."""
    index = 0
    while index < len(steps):
        yield index
        row = BY_NAME.get(steps[index])
        following = steps[index + 1] if index + 1 < len(steps) else ""
        named = row is not None and (row.value in _MAPS or (row.value in _LISTS and following.isdigit()))
        index += 2 if named else 1


def _at(schema: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(schema, list) and step.isdigit() and int(step) < len(schema):
            schema = schema[int(step)]
        elif isinstance(schema, dict) and step in schema:
            schema = schema[step]
        else:
            return None
    return schema


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
