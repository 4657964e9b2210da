"""GBNF (llama.cpp) and the EBNF dialect of other servers to Lark, by llguidance's converter."""

from __future__ import annotations

import re

from llguidance import gbnf_to_lark

# the converter drops leading zeros of these escapes, which makes them invalid
_UNICODE_ESCAPE = re.compile(r"(\\\\)|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def to_lark(source: str) -> str:
    """Lark text. Raises ``ValueError`` for a grammar that is malformed or has no ``root``."""
    try:
        return str(gbnf_to_lark.gbnf_to_lark(_UNICODE_ESCAPE.sub(_character, source)))
    except RecursionError:
        raise ValueError("the grammar is nested too deeply") from None
    except Exception as exc:  # noqa: BLE001 - the converter raises bare Exception for unknown rules
        raise ValueError(str(exc)) from None


def _character(match: re.Match[str]) -> str:
    digits = match.group(2) or match.group(3)
    if (
        digits is None
        or int(digits, 16) > 0x10FFFF
        or chr(int(digits, 16)) in '"\\[]^-\n\r'
        or int(digits, 16) < 32
    ):
        return f"\\x{int(digits, 16):02x}" if digits and int(digits, 16) < 256 else match.group()
    return chr(int(digits, 16))
