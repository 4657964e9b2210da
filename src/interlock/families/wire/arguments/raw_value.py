"""Raw text to a JSON value, by the types its schema allows.

A parameter that can only be a string is its text, character for character. Where the schema allows no string, the
text is JSON, Python's ``None``, ``True`` and ``False`` included; text that is neither stays a string, which then
does not fit the schema. Where it allows strings beside other types, text that is JSON of one of those is that
value, and any other text is a string.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from interlock.core.schema_types import kinds_of
from interlock.families.wire import json_text

_WORDS = {"None": "null", "True": "true", "False": "false"}
_STRING = frozenset(("string",))


def is_text(kinds: AbstractSet[str]) -> bool:
    """The value can be given on as it comes."""
    return kinds == _STRING


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
