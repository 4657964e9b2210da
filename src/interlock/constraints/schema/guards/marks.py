"""Special tokens among text: a spelling that no text has, so that both are followed alike."""

from __future__ import annotations

import re

_SPECIAL = re.compile(rb"\xff\[[0-9]+\]")


def special_text(token_id: int) -> bytes:
    """The spelling of a special token."""
    return b"\xff[%d]" % token_id


def is_text(data: bytes) -> bool:
    """The token with this spelling is an ordinary one."""
    return data[:1] != b"\xff"


def first_special(text: bytes) -> tuple[bytes, bytes]:
    """``text`` cut behind its first special token; all of it where there is none."""
    found = _SPECIAL.search(text)
    end = len(text) if found is None else found.end()
    return text[:end], text[end:]
