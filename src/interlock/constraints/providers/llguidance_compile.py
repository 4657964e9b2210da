"""From a grammar's text to llguidance's matcher, whatever the length of the text.

llguidance recurses over rules that refer to each other, and an overflow ends the process: three thousand optional keys in
declared order, each behind the one before, take more than 8 MiB. So long grammars are compiled on a large stack,
and those that could overflow even that are refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

import llguidance

from interlock.constraints.providers.deep_stack import on_deep_stack
from interlock.constraints.providers.llguidance_errors import (
    check_compile,
    compile_error,
    is_fatal,
    message_of,
)
from interlock.constraints.providers.llguidance_forced import check_forced
from interlock.errors import InterlockError

_FEW_LINES = 100
"""Grammars of so many lines fit any stack."""

_MAX_LEVELS = 10_000
"""Rules and groups of one grammar. Each takes up to 3 KiB of stack if it stands inside all others, and more are refused
by the engine for their symbols, after seconds."""

_MAX_NESTED_TERMINALS = 400
"""Masks walk through terminals inside terminals, on the stack of whoever asks; so many take less than 256 KiB."""

_PART = re.compile(
    r"""
    "(?:[^"\\\n]|\\.)*" | /(?![/*])(?:[^/\\\n]|\\.)+/ | //[^\n]* | \#[^\n]*
  | ^ [ \t]* \?? (?P<defined> \w+ ) (?: \[ [^\]\n]* \] )? \s* ::? (?!:)
  | (?P<opening> (?<!\w) \( )
  | (?P<terminal> \b [A-Z]\w* )
    """,
    re.VERBOSE | re.MULTILINE,
)


def compile_native(tokenizer: Any, grammar: str, limits: llguidance.LLParserLimits) -> Any:
    """A matcher at the start, with a lexer of its own and its first mask computed. Raises ``InterlockError``."""
    text = _lark(grammar)
    if text.count("\n") < _FEW_LINES:
        return _compile(tokenizer, grammar, limits)
    _check_nesting(text)
    return on_deep_stack(lambda: _compile(tokenizer, grammar, limits))


def _lark(grammar: str) -> str:
    """All rules of a grammar, which may be several (``{"grammars": [...]}``)."""
    if not grammar.startswith('{"grammars"'):
        return grammar
    return "\n".join(part.get("lark_grammar", "") for part in json.loads(grammar)["grammars"])


def _compile(tokenizer: Any, grammar: str, limits: llguidance.LLParserLimits) -> Any:
    try:
        native = llguidance.LLMatcher(tokenizer, grammar, log_level=0, limits=limits)
        check_compile(native)
        mask = native.compute_bitmask()
        check_compile(native)
        if not any(mask):
            raise InterlockError("invalid_grammar", "the grammar matches nothing")
        check_forced(native, mask)
    except InterlockError:
        raise
    except BaseException as exc:
        if is_fatal(exc):
            raise
        raise compile_error(message_of(exc)) from None
    return native


def _check_nesting(grammar: str) -> None:
    """Raises ``InterlockError`` for a grammar whose parts may stand inside each other too deeply for a stack."""
    num_levels = 0
    parts: dict[str, list[str]] = {}  # a terminal and those in it
    inside: list[str] | None = None
    for found in _PART.finditer(grammar):
        name = found["defined"]
        if name is not None:
            inside = parts.setdefault(name, []) if name[0].isupper() else None
        if inside is not None and found["terminal"] is not None:
            inside.append(found["terminal"])
        elif inside is None:
            num_levels += name is not None or found["opening"] is not None
    if num_levels > _MAX_LEVELS:
        raise _too_deep(f"{num_levels} rules and groups; at most {_MAX_LEVELS} are supported")
    if _depth(parts) > _MAX_NESTED_TERMINALS:
        raise _too_deep(f"more than {_MAX_NESTED_TERMINALS} terminals inside each other")


def _depth(parts: dict[str, list[str]]) -> int:
    """How many terminals stand inside each other at most; circles, which the engine refuses, are cut."""
    depths: dict[str, int] = {}
    for start in parts:
        stack = [start]
        while stack:
            name = stack[-1]
            inner = parts.get(name, [])
            if name not in depths:
                depths[name] = 1
                stack += [part for part in inner if part not in depths]
                continue
            stack.pop()
            depths[name] = 1 + max((depths.get(part, 0) for part in inner), default=0)
    return max(depths.values(), default=0)


def _too_deep(reason: str) -> InterlockError:
    return InterlockError("constraint_too_complex", f"the grammar has {reason}")
