"""Divisibility of a digit string as terminals, by eliminating the states of the automaton that counts modulo.

Written out, the regex grows fourfold with each state; as terminals that refer to each other it has about a third of
the modulus's cube parts, and the engine keeps each of them once.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_MODULUS = 23  # the engine takes 15 ms for its states, once

Name = Callable[[str], str]
"""Gives a terminal expression a name."""


def divisible(modulus: int, name: Name) -> str:
    """Terminal expression of the digit strings, with points anywhere, whose number is a multiple of ``modulus``:
    odd, no multiple of 5, at most ``MAX_MODULUS``."""
    edges: dict[tuple[int, int], str] = {}
    for state in range(modulus):
        for digit in range(10):
            following = (state * 10 + digit) % modulus
            edges[state, following] = edges.get((state, following), "") + str(digit)
        edges[state, state] = edges.get((state, state), "") + "."
    paths = {pair: name(f"/[{text}]/") for pair, text in sorted(edges.items())}
    for gone in range(modulus - 1, 0, -1):
        paths = _eliminate(paths, gone, name)
    return f"{paths[0, 0]}*"


def _eliminate(paths: dict[tuple[int, int], str], gone: int, name: Name) -> dict[tuple[int, int], str]:
    """The paths among the states below ``gone``, those through it included."""
    out: dict[tuple[int, int], str] = {}
    for source in range(gone):
        for target in range(gone):
            parts = [paths[source, target]] if (source, target) in paths else []
            if (source, gone) in paths and (gone, target) in paths:
                parts.append(f"{paths[source, gone]} {paths[gone, gone]}* {paths[gone, target]}")
            if parts:
                out[source, target] = name(" | ".join(parts))
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
