"""Fields that an endpoint does not know: refused or ignored.

A field that would change the output is refused, unless its value is the one that changes nothing. Every
other unknown field, also of nested objects, is ignored and named in the response header
``x-interlock-ignored``. Each endpoint has a table of what it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from interlock.errors import InterlockError

MAX_NAMED = 32
MAX_NAME_CHARS = 64


@dataclass(frozen=True, slots=True)
class Refused:
    """neutral: values that ask for nothing (``null`` always does). hint: what to use instead."""

    neutral: tuple[Any, ...] = ()
    hint: str | None = None


RefusedFields = Mapping[str, Refused]


def refuse_unsupported(extra: Mapping[str, Any], table: RefusedFields, path: str = "") -> None:
    """Raise ``unsupported_parameter`` for the first field that asks for what is not there. path: of the object
    that has the fields, ending in a dot."""
    for name, value in extra.items():
        rule = table.get(name)
        if rule is not None and value is not None and value not in rule.neutral:
            raise unsupported(path + name, rule.hint)


def unsupported(name: str, hint: str | None = None) -> InterlockError:
    return InterlockError("unsupported_parameter", f"`{name}` is not supported", param=name, hint=hint)


def ignored_header(names: Iterable[str]) -> str:
    """Sorted, separated by commas, safe in a header whatever the client called its fields; bounded."""
    safe = sorted({quote(name[:MAX_NAME_CHARS], safe="[]") for name in names})
    return ", ".join([*safe[:MAX_NAMED], *(["..."] if len(safe) > MAX_NAMED else [])])


def ignored(wire: BaseModel, table: RefusedFields) -> Iterator[str]:
    """Names of the fields that were dropped: present, not null, and not in the table; those of nested
    objects with their path, ``messages[].cache_control``."""
    return (name for name in _unknown(wire, "") if name not in table)


def _unknown(wire: BaseModel, path: str) -> Iterator[str]:
    for name, value in (wire.model_extra or {}).items():
        if value is not None:
            yield path + name
    for name, field in type(wire).model_fields.items():
        value = getattr(wire, name)
        spelling = path + (field.alias or name)
        if isinstance(value, BaseModel):
            yield from _unknown(value, f"{spelling}.")
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, BaseModel):
                    yield from _unknown(item, f"{spelling}[].")
