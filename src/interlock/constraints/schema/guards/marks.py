"""Special tokens among text: a spelling in bytes that no text has, so that both are followed alike."""

from __future__ import annotations

import re

_SPECIAL = re.compile(rb"\xff[\xf6-\xfd]+\xfe")


def special_text(token_id: int) -> bytes:
    """The spelling of a special token: its octal digits in bytes that UTF-8 does not use."""
    return b"\xff" + bytes(0xF6 + int(digit) for digit in f"{token_id:o}") + b"\xfe"


def is_text(data: bytes) -> bool:
    """The token with this spelling is an ordinary one."""
    return data[:1] != b"\xff"


def first_special(text: bytes) -> tuple[bytes, bytes]:
    """``text`` cut behind its first special token; all of it where there is none."""
    found = _SPECIAL.search(text)
    end = len(text) if found is None else found.end()
    return text[:end], text[end:]
