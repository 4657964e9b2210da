"""Why a document is not valid, in the words of a validator: the error that fits the place where a grammar stops."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

_MAX_MESSAGE = 300
_MAX_BRANCHES = 3
_BRANCHING = ("anyOf", "oneOf")
_AT_THE_END = frozenset(
    ["required", "minProperties", "dependentRequired", "dependencies", "minItems", "contains", "minContains"]
)
"""What something is missing for; it shows where an object or array is closed."""

Steps = tuple[str | int, ...]


class Place:
    """Where a JSON text goes on behind ``text[:position]``. steps: of the value there. char: the character there."""

    def __init__(self, text: str, position: int) -> None:
        reader = _read(text[:position])
        self.steps = reader.steps()
        self.char = text[position : position + 1]
        self._ahead = self.steps
        if self.char == ",":
            reader, position = _read(text[: position + 1]), position + 1
            self._ahead = reader.steps()
        if reader.is_at_key:
            self._ahead += _key(text, position - len(reader.string))

    @property
    def pointer(self) -> str:
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.steps)

    def rank(self, error: ValidationError) -> tuple[int, bool]:
        """The higher, the better the error explains that a text stops here. The first is -1 if it is elsewhere."""
        path = tuple(error.absolute_path)
        is_here = path in (self.steps[: len(path)], self._ahead[: len(path)])
        is_closing = self.char in ("}", "]", "")
        return len(path) if is_here else -1, (error.validator in _AT_THE_END) == is_closing


class _Reader:
    """Reads a JSON text up to a place. string: what has been read of the string there."""

    def __init__(self) -> None:
        self.stack: list[str | int | None] = []
        self.string = ""

    @property
    def is_at_key(self) -> bool:
        return bool(self.stack) and self.stack[-1] is None

    def steps(self) -> Steps:
        return tuple(step for step in self.stack if step is not None)


def _read(prefix: str) -> _Reader:
    reader = _Reader()
    stack, in_string, escaped, last = reader.stack, False, False, ""
    for char in prefix:
        if in_string:
            reader.string += char
            in_string = escaped or char != '"'
            escaped = char == "\\" and not escaped
            if not in_string:
                last, reader.string = json.loads(reader.string), ""
        elif char == '"':
            reader.string, in_string = char, True
        elif char in "{[":
            stack.append(None if char == "{" else 0)
        elif char in "}]":
            stack.pop()
        elif char == ":":
            stack[-1] = last
        elif char == ",":
            step = stack[-1]
            stack[-1] = step + 1 if isinstance(step, int) else None
    return reader


def _key(text: str, start: int) -> Steps:
    rest = text[start:].lstrip()
    try:
        key, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return ()
    return (key,) if isinstance(key, str) else ()


def explain(validator: Validator, data: Any, place: Place) -> str | None:
    """What is wrong there, ``None`` if nothing is wrong that can show there."""
    try:
        errors = list(validator.iter_errors(data))
    except Exception as failure:  # noqa: BLE001 - a foreign library, on the schemas of strangers
        return f"the validator cannot tell: {failure}"[:_MAX_MESSAGE]
    error = _best(errors, place)
    return None if error is None or place.rank(error)[0] < 0 else _told(error, place)


def _best(errors: Iterable[ValidationError], place: Place) -> ValidationError | None:
    return max(errors, key=place.rank, default=None)


def _told(error: ValidationError, place: Place) -> str:
    branches: dict[str | int, list[ValidationError]] = {}
    for below in error.context if error.validator in _BRANCHING else ():
        branches.setdefault(below.schema_path[0], []).append(below)
    chosen = [found for each in branches.values() if (found := _best(each, place)) is not None]
    if not chosen:
        keyword = f" ({error.validator})" if error.validator else ""  # none for the schema ``false``
        return f"{error.message[:_MAX_MESSAGE]}{keyword}"
    nearest = max(place.rank(found)[0] for found in chosen)
    told = list(dict.fromkeys(_told(found, place) for found in chosen if place.rank(found)[0] == nearest))
    if len(told) == 1:
        return told[0]
    more = [f"{len(told) - _MAX_BRANCHES} more"] if len(told) > _MAX_BRANCHES else []
    return f"no branch of {error.validator} fits: {'; '.join([*told[:_MAX_BRANCHES], *more])}"
