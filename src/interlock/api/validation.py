"""Pydantic's findings as one ``InterlockError`` that names the field the way the client wrote it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from interlock.errors import InterlockError

Path = tuple[str | int, ...]

_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "is_instance_of": "a JSON value",
}


def invalid_body(error: ValidationError, body: Any) -> InterlockError:
    """``missing_field`` or ``invalid_value`` for the first problem in ``body``; of the alternatives of a
    union, the one that fits best."""
    found = [(_path(item["loc"], item["type"], body), item) for item in error.errors(include_url=False)]
    first = found[0][0]
    path = max((path for path, _ in found if path[: len(first)] == first), key=len)
    here = [item for other, item in found if other == path]
    param = dotted(path)
    if here[0]["type"] == "missing":
        return InterlockError("missing_field", f"{param} is missing", param=param)
    if here[0]["type"] == "extra_forbidden":
        return InterlockError("invalid_value", f"{param} is not a known field", param=param)
    expected = dict.fromkeys(_EXPECTED.get(item["type"], "") for item in here)
    if "" in expected:
        message = here[0]["msg"]
        return InterlockError("invalid_value", f"{param}: {message[:1].lower()}{message[1:]}", param=param)
    return InterlockError("invalid_value", f"{param} must be {' or '.join(expected)}", param=param)


def dotted(path: Path) -> str:
    """``("messages", 2, "content")`` as ``messages[2].content``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _path(loc: Path, kind: str, body: Any) -> Path:
    """``loc`` without the names of union members, which pydantic puts between the keys."""
    path: list[str | int] = []
    value = body
    part: Any
    for position, part in enumerate(loc):
        if _has(value, part):
            value = value[part]
        elif not (kind == "missing" and position == len(loc) - 1):
            continue
        path.append(part)
    return tuple(path)


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int)
    return isinstance(value, dict) and part in value
