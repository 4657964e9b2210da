"""JSON values in a form that is equal exactly where the values are, and what an unfinished one may still become."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

Canonical = Any
"""A string as the bytes of its plainest spelling, what ends it included; a number as digits and exponent, a word as itself;
a container as a tuple: its opening character, then the items, or the members (key, value) in order of their keys."""

_WHOLE = re.compile(rb'"(?:[^\\]|\\u[0-9a-fA-F]{4}|\\[^u])*')  # a string so far, no escape of which is open
_HIGH_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_BEGUN = re.compile(rb"-?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]*)?")
_WORDS = frozenset(("null", "true", "false", "None", "True", "False"))
_MAX_PADDING = 24  # zeros behind a number that is complete
_UNCLEAR = b""


def scalar(text: bytes) -> Canonical:
    """Of a number or a word. Raises ``ValueError``."""
    word = text.decode().strip()
    return word if word in _WORDS else number(word)


def spelling(value: str) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def is_number(value: Canonical) -> bool:
    return isinstance(value, str) and value[-1].isdigit()


def array(items: Iterable[Canonical]) -> Canonical:
    return ("[", *items)


def object_(members: Iterable[tuple[str, Canonical]]) -> Canonical:
    return ("{", *sorted(dict(members).items(), key=lambda member: member[0]))


def number(text: str) -> str:
    """Significant digits and exponent: exact, and short where the number is not. Raises ``ValueError``."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    mantissa, _, exponent = text.lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    return f"{sign}{kept}e{int(exponent or 0) - len(fraction) + len(digits) - len(kept)}" if kept else "0"


def may_become(text: bytes, value: Canonical) -> bool:
    """Whether a scalar that begins with ``text`` may be ``value``. True in doubt."""
    if not text:
        return True
    if isinstance(value, bytes):
        return string_rest(text, value) is not None
    if isinstance(value, tuple):
        return False
    if not is_number(value):
        return str(value).encode().startswith(text.rstrip())
    begun = text.rstrip()
    return _NUMBER_BEGUN.fullmatch(begun) is not None and _may_be_number(begun.decode(), value)


def is_plain_string(text: bytes) -> bool:
    """A string has begun, and whatever it may become begins with ``text`` in its plainest spelling."""
    return text[:1] == b'"' and b"\\u" not in text and not text.endswith(b"\\")


def string_rest(text: bytes, value: bytes) -> bytes | None:
    """What a string that begins with ``text`` lacks of ``value`` in its plainest spelling; ``None`` if it is another one.
    Empty inside a character that has several spellings."""
    if value.startswith(text):
        return value[len(text) :]
    if text[:1] != b'"' or is_plain_string(text):
        return None
    parts = _plain_and_open(text)
    if parts is None:
        return _UNCLEAR  # inside a character of several bytes
    begun, escape = parts
    if not value.startswith(begun):
        return None
    rest = value[len(begun) :]
    if rest.startswith(escape):
        return rest[len(escape) :]
    return None if rest[0] < 0x80 else _UNCLEAR


@lru_cache(4_096)
def _plain_and_open(text: bytes) -> tuple[bytes, bytes] | None:
    """A string so far in its plainest spelling, and the escape that is open; ``None`` inside a character."""
    size = len(text) if _WHOLE.fullmatch(text) else text.rindex(b"\\")
    half = _HIGH_HALF.search(text, 0, size)
    size = size if half is None else half.start()
    try:
        return spelling(json.loads(text[:size] + b'"'))[:-1], text[size:]
    except ValueError:
        return None


def _may_be_number(text: str, value: str) -> bool:
    is_negative = text.startswith("-")
    text = text.lstrip("-").lower()
    mantissa, with_exponent, _ = text.partition("e")
    whole, point, fraction = mantissa.partition(".")
    begun = (whole + fraction).lstrip("0")
    if value == "0":
        return not begun and len(fraction) <= _MAX_PADDING
    if is_negative != value.startswith("-") or not text:
        return is_negative == value.startswith("-")
    digits, _, exponent = value.lstrip("-").partition("e")
    size = len(digits) + int(exponent)  # of the part before the point
    if with_exponent:
        return begun.rstrip("0") == digits
    if len(fraction) > _MAX_PADDING + len(digits) + abs(int(exponent)):
        return False
    if not (digits + "0" * len(begun)).startswith(begun):
        return False
    if len(whole) == 1:
        return True  # an exponent may follow
    return len(whole) == size if point else len(whole) <= size


def number_spellings(value: str) -> list[bytes]:
    """How a number is likely to be written."""
    sign, (digits, _, exponent) = value[: value.startswith("-")], value.lstrip("-").partition("e")
    power = int(exponent or 0)
    scale = power + len(digits) - 1
    zeros = "0" * _MAX_PADDING
    mantissas = [f"{digits[0]}.{digits[1:]}"] if len(digits) > 1 else [digits, f"{digits}.0"]
    found = [f"{mantissas[-1]}{zeros}"]
    found += [f"{mantissa}{mark}{scale}" for mantissa in mantissas for mark in ("e", "E", "e+", "E+")]
    if 0 <= power <= _MAX_PADDING:
        found.append(f"{digits}{'0' * power}.{zeros}")
    elif -_MAX_PADDING <= power < 0:
        padded = digits.rjust(1 - power, "0")
        found.append(f"{padded[:power]}.{padded[power:]}{zeros}")
    if value == "0":
        found += [f"-{text}" for text in found]
    return [f"{sign}{text}".encode() for text in found]
