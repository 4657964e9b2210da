"""Sets of code points as sorted, disjoint ranges. Surrogates are in no set: strings are Unicode text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]  # sorted, disjoint, not adjacent, inclusive

MAX = 0x10FFFF
ALL: Ranges = ((0, 0xD7FF), (0xE000, MAX))
NOTHING: Ranges = ()


def from_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Normal form of any ranges, without surrogates."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    if any(low <= 0xDFFF and high >= 0xD800 for low, high in merged):
        return intersect(tuple(merged), ALL)
    return tuple(merged)


def of(text: str) -> Ranges:
    """The characters of ``text``."""
    return from_ranges((ord(char), ord(char)) for char in text)


def union(left: Ranges, right: Ranges) -> Ranges:
    if left == right or not right:
        return left
    return from_ranges(left + right)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if low <= high:
            out.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def complement(ranges: Ranges) -> Ranges:
    out: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            out.append((start, low - 1))
        start = high + 1
    if start <= MAX:
        out.append((start, MAX))
    return intersect(tuple(out), ALL)


def subtract(left: Ranges, right: Ranges) -> Ranges:
    return intersect(left, complement(right))


def contains(ranges: Ranges, code: int) -> bool:
    if len(ranges) < 8:
        return any(low <= code <= high for low, high in ranges)
    low, high = 0, len(ranges) - 1
    while low <= high:
        middle = (low + high) // 2
        if code < ranges[middle][0]:
            high = middle - 1
        elif code > ranges[middle][1]:
            low = middle + 1
        else:
            return True
    return False


def size(ranges: Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


DIGIT = of("0123456789")
WORD = from_ranges([(48, 57), (65, 90), (95, 95), (97, 122)])
NOT_WORD = complement(WORD)
SPACE = from_ranges(
    [
        (9, 13),
        (32, 32),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
        (0xFEFF, 0xFEFF),
    ]
)
LINE_END = of("\n\r\u2028\u2029")
DOT = complement(LINE_END)

_CATEGORY_NAMES = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Other": "C",
    "Control": "Cc",
}
_SCRIPT_BLOCKS: dict[str, list[tuple[int, int]]] = {"ASCII": [(0, 127)], "Any": [(0, MAX)]}


@cache
def _categories() -> dict[str, Ranges]:
    """Ranges of every two-letter general category, in one pass over Unicode."""
    found: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for code in range(1, MAX + 2):
        category = unicodedata.category(chr(code)) if code <= MAX else ""
        if category != current:
            found.setdefault(current, []).append((start, code - 1))
            start, current = code, category
    return {name: from_ranges(ranges) for name, ranges in found.items()}


@cache
def unicode_property(name: str) -> Ranges | None:
    r"""Code points of a ``\p{...}`` property: general categories, ``ASCII`` and ``Any``; else ``None``."""
    key, _, value = name.rpartition("=")
    if key not in ("", "gc", "General_Category"):
        return None
    if value in _SCRIPT_BLOCKS:
        return from_ranges(_SCRIPT_BLOCKS[value])
    value = _CATEGORY_NAMES.get(value, value)
    tables = _categories()
    chosen = [ranges for category, ranges in tables.items() if category == value or category[0] == value]
    if not chosen:
        return None
    return from_ranges(pair for ranges in chosen for pair in ranges)
