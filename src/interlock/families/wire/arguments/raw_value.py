"""Raw text to a JSON value, by the types its schema allows.

A parameter that can only be a string is its text, character for character. Where the schema allows no string, the
text is JSON, Python's ``None``, ``True`` and ``False`` included; text that is neither stays a string, which then
does not fit the schema. Where it allows strings beside other types, text that is JSON of one of those is that
value, and any other text is a string; it is given on from where nothing that may follow makes it another value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from interlock.core.schema_types import kinds_of
from interlock.families.wire import json_text

_WORDS = {"None": "null", "True": "true", "False": "false"}
_STRING = frozenset(("string",))
_MAY_BECOME_VALUE = re.compile(
    r"\s*(?:[\[{].*|[-+.eE0-9]+\s*|n(?:u(?:l(?:l\s*)?)?)?|t(?:r(?:u(?:e\s*)?)?)?|f(?:a(?:l(?:s(?:e\s*)?)?)?)?)?",
    re.DOTALL,
)
_MAX_LOOKS = 64  # pieces, and characters


def is_text(kinds: AbstractSet[str]) -> bool:
    """The value can be given on as it comes."""
    return kinds == _STRING


def can_only_be_text(pieces: Sequence[str], kinds: AbstractSet[str]) -> bool:
    """A value that begins with these pieces is a string, whatever follows."""
    if "string" not in kinds or len(pieces) > _MAX_LOOKS:
        return False
    return _MAY_BECOME_VALUE.fullmatch("".join(pieces)[:_MAX_LOOKS]) is None


def is_json(text: str) -> bool:
    try:
        json_text.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def value_text(text: str, kinds: AbstractSet[str]) -> str:
    """The JSON text of a whole value."""
    trimmed = text.strip()
    if "string" not in kinds:
        trimmed = _WORDS.get(trimmed, trimmed)
    if trimmed and not is_text(kinds):
        try:
            value: Any = json_text.loads(trimmed)
        except (ValueError, RecursionError):
            return json_text.quote(text)
        if "string" not in kinds or (not isinstance(value, str) and kinds_of(value) & kinds):
            return trimmed
    return json_text.quote(text)
