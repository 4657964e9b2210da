"""What a grammar that a user brought may not do inside ours."""

from __future__ import annotations

import re

from interlock.core.constraint import Grammar
from interlock.errors import InterlockError

MAX_SOURCE_CHARS = 256 * 1024

# strings, regexes and comments are skipped, so that only the grammar's own syntax is searched
_TOKEN = re.compile(
    r"""
    (?P<skip> "(?:[^"\\\n]|\\.)*" | /(?![/*])(?:[^/\\\n]|\\.)+/ | //[^\n]* | \#[^\n]* )
  | (?P<special> <[^<>\s]+> )
  | (?P<reference> @[A-Za-z_][\w-]* )
  | (?P<attribute> \b(?:max_tokens|stop|temperature)\s*= )
    """,
    re.VERBOSE,
)

_REASONS = {
    "special": "special tokens cannot be used in a grammar of a request",
    "reference": "references to other grammars cannot be used",
    "attribute": "this attribute cannot be used: budgets and sampling are parameters of the request",
}


def too_long(grammar: Grammar) -> InterlockError:
    return InterlockError(
        "constraint_too_complex",
        f"the grammar is longer than {MAX_SOURCE_CHARS} characters",
        param=grammar.origin or None,
    )


def check_lark(grammar: Grammar, lark: str) -> None:
    """Refuse constructs that would reach beyond the grammar. Raises ``InterlockError("invalid_grammar")``.

    Special tokens could end the turn or open a call in its middle; ``max_tokens`` and ``stop`` would disable
    the rollback that drafts need.
    """
    if len(lark) > MAX_SOURCE_CHARS:
        raise too_long(grammar)
    for match in _TOKEN.finditer(lark):
        kind = match.lastgroup
        if kind is not None and kind != "skip":
            line = lark.count("\n", 0, match.start()) + 1
            raise InterlockError(
                "invalid_grammar",
                f"line {line}: {match.group()!r}: {_REASONS[kind]}",
                param=grammar.origin or None,
            )
