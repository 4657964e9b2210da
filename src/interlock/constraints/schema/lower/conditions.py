"""Conditions on the 64-bit parameter of a rule, simplified while they are built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

TRUE: Final = "true"
FALSE: Final = "false"
NEVER: Final = "and(bit_set(0), bit_clear(0))"


def all_of(conditions: Iterable[str]) -> str:
    parts = list(dict.fromkeys(item for item in conditions if item != TRUE))
    if FALSE in parts:
        return FALSE
    return _fold("and", parts) if parts else TRUE


def any_of(conditions: Iterable[str]) -> str:
    parts = list(dict.fromkeys(item for item in conditions if item != FALSE))
    if TRUE in parts:
        return TRUE
    return _fold("or", parts) if parts else FALSE


def _fold(function: str, parts: list[str]) -> str:
    """A balanced tree: deep nesting costs the parser of the grammar its stack."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"{function}({_fold(function, parts[:middle])},{_fold(function, parts[middle:])})"


def set_bits(bits: Iterable[int]) -> str:
    found = sorted(bits)
    if not found:
        return "_"
    if len(found) == 1:
        return f"set_bit({found[0]})"
    return f"bit_or({sum(1 << bit for bit in found):#x})"


def has_all(bits: Iterable[int]) -> str:
    """Runs of bits are tested together."""
    return all_of(
        f"is_ones([{low}:{high}])" if high - low > 1 else f"bit_set({low})" for low, high in _runs(bits)
    )


def has_none(bits: Iterable[int]) -> str:
    return all_of(
        f"is_zeros([{low}:{high}])" if high - low > 1 else f"bit_clear({low})" for low, high in _runs(bits)
    )


def lacks_one(bits: Iterable[int]) -> str:
    """Some of ``bits`` is clear."""
    return any_of(
        f"not(is_ones([{low}:{high}]))" if high - low > 1 else f"bit_clear({low})" for low, high in _runs(bits)
    )


def merged(gates: Iterable[str]) -> Iterator[str]:
    """Many "this bit is clear" are one test of a range."""
    bits = []
    for gate in gates:
        if gate.startswith("bit_clear(") and gate.count("(") == 1:
            bits.append(int(gate[10:-1]))
        else:
            yield gate
    if bits:
        yield lacks_one(bits)


def _runs(bits: Iterable[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for bit in sorted(set(bits)):
        if out and out[-1][1] == bit:
            out[-1] = (out[-1][0], bit + 1)
        else:
            out.append((bit, bit + 1))
    return out


def alternatives(options: Iterable[tuple[str, str]]) -> str:
    """Body of a parametric rule out of (symbols, condition); impossible ones left out. A rule of a single
    production gets a second one that never applies: the engine fails on it otherwise."""
    lines = [f"{symbols} %if {condition}" if condition != TRUE else symbols
             for symbols, condition in options if condition != FALSE]  # fmt: skip
    if len(lines) == 1:
        first = lines[0].split(" %if ")[0]
        lines.append(f"{first} %if {NEVER}")
    return " | ".join(lines)
