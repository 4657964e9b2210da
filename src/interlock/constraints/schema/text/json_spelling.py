"""Strings as JSON writes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.emit import char_class

_RAW: Final = chars.subtract(chars.from_ranges([(0x20, chars.MAX)]), chars.of('"\\'))
_SHORT: Final = {'"': "\\x22", "\\": "\\\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_BEYOND_ASCII: Final = chars.from_ranges([(0x7F, chars.MAX)])


@dataclass(frozen=True, slots=True)
class JsonSpelling:
    r"""One spelling for each ASCII character, as ``json.dumps`` writes it: raw where JSON allows it, else the
    short escape, else ``\u00xx``. Beyond ASCII: raw, or with ``escapes`` also ``\uxxxx`` (surrogate pairs
    where needed), in lower case."""

    escapes: bool = True
    after: str = ""  # regex behind the closing quote

    @property
    def opening(self) -> str:
        return "\\x22"

    @property
    def closing(self) -> str:
        return f"\\x22{self.after}"

    def chars(self, ranges: Ranges) -> str:
        return _spell(ranges, self.escapes)


@lru_cache(maxsize=4096)
def _spell(ranges: Ranges, escapes: bool) -> str:
    parts = []
    raw = chars.intersect(ranges, _RAW)
    if raw:
        parts.append(char_class(raw))
    short = [code for char, code in _SHORT.items() if chars.contains(ranges, ord(char))]
    if short:
        parts.append(f"\\\\[{''.join(short)}]" if len(short) > 1 else f"\\\\{short[0]}")
    hexed = [(code, code) for code in range(0x20) if chr(code) not in _SHORT and chars.contains(ranges, code)]
    codes = chars.from_ranges(hexed)
    if escapes:
        codes = chars.union(codes, chars.intersect(ranges, _BEYOND_ASCII))
    basic = [(low, min(high, 0xFFFF)) for low, high in codes if low <= 0xFFFF]
    if basic:
        parts.append(f"\\\\u({'|'.join(_hex_ranges(basic))})")
    astral = [(max(low, 0x10000), high) for low, high in codes if high > 0xFFFF]
    if astral:
        parts.append("|".join(_pairs(low, high) for low, high in astral))
    return parts[0] if len(parts) == 1 and raw else f"({'|'.join(parts)})"


def _pairs(low: int, high: int) -> str:
    """Surrogate pairs of a range beyond the basic plane."""
    (high1, low1), (high2, low2) = _surrogates(low), _surrogates(high)
    if high1 == high2:
        return _pair([(high1, high2)], [(low1, low2)])
    parts = []
    if low1 > 0xDC00:
        parts.append(_pair([(high1, high1)], [(low1, 0xDFFF)]))
        high1 += 1
    if low2 < 0xDFFF:
        parts.append(_pair([(high2, high2)], [(0xDC00, low2)]))
        high2 -= 1
    if high1 <= high2:
        parts.append(_pair([(high1, high2)], [(0xDC00, 0xDFFF)]))
    return "|".join(parts)


def _pair(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> str:
    return f"\\\\u({'|'.join(_hex_ranges(first))})\\\\u({'|'.join(_hex_ranges(second))})"


def _surrogates(code: int) -> tuple[int, int]:
    return 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)


def _hex_ranges(ranges: list[tuple[int, int]]) -> list[str]:
    return [text for low, high in ranges for text in _hex(f"{low:04x}", f"{high:04x}")]


def _hex(low: str, high: str) -> list[str]:
    """Regexes for the hexadecimal numbers of equal length from ``low`` to ``high``."""
    if low == high:
        return [low]
    if len(low) == 1:
        return [_digits(int(low, 16), int(high, 16))]
    rest = len(low) - 1
    full = f"[0-9a-f]{{{rest}}}" if rest > 1 else "[0-9a-f]"
    if low[0] == high[0]:
        return [low[0] + text for text in _hex(low[1:], high[1:])]
    out: list[str] = []
    first, last = int(low[0], 16), int(high[0], 16)
    if low[1:] != "0" * rest:
        out += [low[0] + text for text in _hex(low[1:], "f" * rest)]
        first += 1
    tail: list[str] = []
    if high[1:] != "f" * rest:
        tail = [high[0] + text for text in _hex("0" * rest, high[1:])]
        last -= 1
    if first <= last:
        out.append(_digits(first, last) + full)
    return out + tail


def _digits(low: int, high: int) -> str:
    if low == high:
        return f"{low:x}"
    parts = []
    if low <= 9:
        parts.append(f"{low}-{min(high, 9)}" if low != min(high, 9) else f"{low}")
    if high >= 10:
        start = max(low, 10)
        parts.append(f"{start:x}-{high:x}" if start != high else f"{high:x}")
    return f"[{''.join(parts)}]"
