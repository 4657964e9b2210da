"""Divisibility of a digit string as a regex, by eliminating the states of the automaton that counts modulo."""

from __future__ import annotations

from functools import lru_cache

_MAX_MODULUS = 13
_MAX_CHARS = 30_000


@lru_cache(maxsize=32)
def divisible(modulus: int) -> str | None:
    """Regex of the digit strings, with points anywhere, whose number is a multiple of ``modulus``; ``None`` if it
    would be too long. ``modulus`` is odd and no multiple of 5."""
    if modulus > _MAX_MODULUS:
        return None
    edges: dict[tuple[int, int], str] = {}
    for state in range(modulus):
        for digit in range(10):
            following = (state * 10 + digit) % modulus
            edges[state, following] = edges.get((state, following), "") + str(digit)
        edges[state, state] = edges.get((state, state), "") + "."
    regexes = {pair: f"[{text}]" for pair, text in edges.items()}
    for gone in range(modulus - 1, 0, -1):
        regexes = _eliminate(regexes, gone, range(gone))
        if sum(map(len, regexes.values())) > _MAX_CHARS:
            return None
    return f"({regexes[0, 0]})*"


def _eliminate(regexes: dict[tuple[int, int], str], gone: int, left: range) -> dict[tuple[int, int], str]:
    loop = regexes.get((gone, gone))
    middle = f"({loop})*" if loop else ""
    out: dict[tuple[int, int], str] = {}
    for source in left:
        for target in left:
            parts = [regexes[source, target]] if (source, target) in regexes else []
            if (source, gone) in regexes and (gone, target) in regexes:
                parts.append(f"{regexes[source, gone]}{middle}{regexes[gone, target]}")
            if parts:
                out[source, target] = parts[0] if len(parts) == 1 else f"({'|'.join(parts)})"
    return out


def prime_powers(number: int) -> list[int]:
    """Factors without a common divisor, for a small ``number``; a large rest stays whole."""
    out = []
    divisor = 3
    while divisor * divisor <= number and divisor < 1000:
        power = 1
        while number % divisor == 0:
            number, power = number // divisor, power * divisor
        if power > 1:
            out.append(power)
        divisor += 2
    return [*out, number] if number > 1 else out
