"""Whether a document is valid, by two validators that know nothing of grammars."""

from __future__ import annotations

import contextlib
import decimal
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import jsonschema_rs
from jsonschema.exceptions import best_match

from interlock.constraints.validator import validator

Answer = Literal["valid", "invalid", "disputed", "rounded", "repeated", "unjudged"]
_MAX_SHOWN = 300
_DIGITS = 2_000  # of exact arithmetic


@dataclass(frozen=True, slots=True)
class Opinion:
    """disputed: python-jsonschema and jsonschema-rs do not agree. rounded: valid by the numbers as they are written, not by
    those that a reader of 64-bit floats gets. repeated: valid, but an object has a key twice. unjudged: python-jsonschema gives up, or takes too long."""

    answer: Answer
    why: str = ""


class _TooSlowError(Exception):
    """A validator ran out of time."""


class Oracle:
    """Opinions on the documents of one schema. assert_formats: formats are more than annotations, to jsonschema-rs.
    seconds: for one validator and one document."""

    def __init__(self, schema: Any, *, assert_formats: bool, seconds: float = 5.0) -> None:
        sys.set_int_max_str_digits(0)
        self._seconds = seconds
        self._first = validator(schema)
        self._exact = validator(json.loads(json.dumps(schema), parse_float=Decimal))
        self._second = None if _is_openapi(schema) else _second(schema, assert_formats)

    def judge(self, text: str) -> Opinion:
        repeated: list[str] = []
        try:
            data = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, repeated))
        except ValueError as error:
            return Opinion("invalid", f"not JSON: {error}"[:_MAX_SHOWN])
        try:
            with _limited(self._seconds):
                error = best_match(self._first.iter_errors(data))
                if error is not None:
                    answer: Answer = "rounded" if self._is_exactly_valid(text) else "invalid"
                    is_alone = self._second is not None and self._second.is_valid(data)
                    return Opinion("disputed" if is_alone else answer, error.message[:_MAX_SHOWN])
        except Exception as failure:  # noqa: BLE001 - a foreign library, on the schemas of strangers
            return Opinion("unjudged", f"{type(failure).__name__}: {failure}"[:_MAX_SHOWN])
        found = self._second_opinion(data)
        return Opinion("repeated", repeated[0]) if repeated and found.answer == "valid" else found

    def _is_exactly_valid(self, text: str) -> bool:
        with decimal.localcontext(prec=_DIGITS, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
            return bool(self._exact.is_valid(json.loads(text, parse_float=Decimal)))

    def _second_opinion(self, data: Any) -> Opinion:
        if self._second is None:
            return Opinion("valid")
        try:
            error = next(self._second.iter_errors(data), None)
        except ValueError:  # it gives up, on numbers beyond its own or on a pattern that takes too much work
            return Opinion("valid")
        return Opinion("valid") if error is None else Opinion("disputed", error.message[:_MAX_SHOWN])


def _second(schema: Any, assert_formats: bool) -> Any:
    """``None`` where it does not take the schema."""
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=assert_formats)
    except ValueError:
        return None


def _is_openapi(schema: Any) -> bool:
    """It says ``nullable``, which jsonschema-rs does not know."""
    return '"nullable": true' in json.dumps(schema)


def _object(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    """The last value of a key counts, as for most readers."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated += [key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at])]
    return found


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises ``_TooSlowError`` inside where it takes longer. For the main thread."""

    def stop(*_: object) -> None:
        raise _TooSlowError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
