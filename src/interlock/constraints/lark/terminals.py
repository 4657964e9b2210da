"""The texts of terminals to ECMAScript patterns."""

from __future__ import annotations

import re
from typing import Final

from interlock.constraints.schema.text import ecma_syntax

_META: Final = frozenset("\\^$.*+?()[]{}|/-")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "b": "\b", "0": "\0"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PIECE: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?[=!<][=!]?|.", re.DOTALL)
_RANGE: Final = re.compile(r"(\\.|[^\\])-(\\.|[^\\])|\\.|[^\\]", re.DOTALL)
_ASSERTIONS: Final = ("^", "$", "\\b", "\\B", "\\A", "\\z", "\\Z")


def of_string(text: str) -> str:
    """text: as in the grammar, with its quotes. Raises ``ValueError``."""
    any_case = text.endswith("i")
    value = _unescaped(text.removesuffix("i")[1:-1])
    return "".join(_any_case(char) if any_case else _literal(char) for char in value)


def of_range(first: str, last: str) -> str:
    """Raises ``ValueError``."""
    low, high = _unescaped(first[1:-1]), _unescaped(last[1:-1])
    if len(low) != 1 or len(high) != 1 or low > high:
        raise ValueError("a range goes from one character to a later one")
    return f"[{_literal(low)}-{_literal(high)}]"


def of_regex(text: str) -> str:
    """text: as in the grammar, between slashes, with flags. ``.`` is all but a line feed, as in Lark; the rest is
    read as ECMAScript's. Raises ``ValueError``."""
    body, _, flags = text[1:].rpartition("/")
    unknown = flags.strip("isu")
    if unknown:
        raise ValueError(f"the flag {unknown[0]!r} is not supported, only i, s and u")
    pieces = [_piece(match[0], flags) for match in _PIECE.finditer(body)]
    pattern = f"(?:{''.join(pieces)})"
    ecma_syntax.parse(pattern)
    return pattern


def _piece(text: str, flags: str) -> str:
    if text in _ASSERTIONS or text in ("(?=", "(?!", "(?<=", "(?<!"):
        raise ValueError(f"{text} is not supported in a terminal: it asserts something and matches no text")
    if text == ".":
        return r"[\s\S]" if "s" in flags else r"[^\n]"
    if "i" not in flags:
        return text
    if text[0] == "[":
        return _class_any_case(text)
    return _any_case(text) if len(text) == 1 and text.isalpha() else text


def _class_any_case(text: str) -> str:
    """A class and what differs from it in the case of letters."""
    head = "[^" if text.startswith("[^") else "["
    inner = text[len(head) : -1]
    extra = []
    for match in _RANGE.finditer(inner):
        low, high = match[1] or match[0], match[2] or match[0]
        if len(low) == len(high) == 1 and low.isalpha() and high.isalpha() and low.islower() == high.islower():
            extra.append(f"{low.swapcase()}-{high.swapcase()}")
        elif match[1] and any(char.isalpha() for char in (low[-1], high[-1])):
            raise ValueError(f"the range {match[0]} has no plain counterpart in the other case")
    return f"{head}{inner}{''.join(extra)}]"


def _any_case(char: str) -> str:
    other = char.swapcase()
    return f"[{char}{other}]" if other != char and len(other) == 1 else _literal(char)


def _literal(char: str) -> str:
    return f"\\{char}" if char in _META else char


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits is None:
            return _ESCAPES.get(match[4], match[4])
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError(f"{match[0]} is no character")
        return chr(code)

    return _ESCAPE.sub(character, text)
