"""Fixed text in a grammar: quoting, and splitting so that the lexer cannot be misled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from interlock.errors import InterlockError

MAX_LITERAL_CHARS = 16 * 1024
"""Of one fixed text. The grammar engine takes 2 us for each character, all of them in the step in which the text begins."""


def quote(text: str) -> str:
    """A Lark string literal. Raises ``InterlockError`` for text that UTF-8 cannot express, or that is too long."""
    if len(text) > MAX_LITERAL_CHARS:
        raise InterlockError("constraint_too_complex", too_long(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InterlockError(
            "invalid_value", f"{text!r} contains a lone surrogate, which no token can spell"
        ) from None
    return json.dumps(text, ensure_ascii=False)


def too_long(text: str) -> str:
    """Why a fixed text of more than ``MAX_LITERAL_CHARS`` is refused."""
    return f"a fixed text has {len(text)} characters; at most {MAX_LITERAL_CHARS} are supported"


def regex_literal(pattern: str) -> str:
    r"""A Lark regex literal: ``/`` and line breaks are escaped, existing escapes stay."""
    out = []
    for match in re.finditer(r"\\(?s:.)|(?s:.)", pattern):
        piece = match.group()
        if piece in ("/", "\\/"):
            out.append("\\/")
        elif piece in ("\n", "\\\n"):
            out.append("\\n")
        elif piece in ("\r", "\\\r"):
            out.append("\\r")
        else:
            out.append(piece)
    return "/" + "".join(out) + "/"


def escape_regex(text: str) -> str:
    """A Rust regex that matches exactly ``text``."""
    return "".join(
        char if char.isalnum() or char in " _<>" or ord(char) > 127 else f"\\x{{{ord(char):x}}}"
        for char in text
    )


def prefix_free(literals: Iterable[str]) -> dict[str, tuple[str, ...]]:
    r"""Each literal as pieces, such that no piece is a proper prefix of another.

    The lexer takes the longest lexeme and does not back up: with ``"\n"`` and ``"\n</calls>"`` both possible,
    a line break followed by anything but ``</calls>`` would be lost.
    """
    pieces: dict[str, tuple[str, ...]] = {text: (text,) for text in literals if text}
    atoms = set(pieces)
    while True:
        lengths = sorted({len(atom) for atom in atoms})
        split = {atom: cut for atom in atoms if (cut := _shortest_prefix(atom, atoms, lengths))}
        if not split:
            return pieces
        parts = {atom: (atom[:cut], atom[cut:]) for atom, cut in split.items()}
        pieces = {
            text: tuple(part for atom in old for part in parts.get(atom, (atom,)))
            for text, old in pieces.items()
        }
        atoms = {atom for old in pieces.values() for atom in old}


def _shortest_prefix(atom: str, atoms: set[str], lengths: list[int]) -> int:
    return next((cut for cut in lengths if cut < len(atom) and atom[:cut] in atoms), 0)
