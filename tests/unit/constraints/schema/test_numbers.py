from __future__ import annotations

import json
import math
import random
import struct
from fractions import Fraction

import pytest

from interlock.constraints.schema.numbers.sets import (
    INTEGERS,
    NumberSet,
    at_least,
    at_most,
    complement,
    has,
    intersect,
    multiples,
    points,
    union,
)
from interlock.constraints.schema.numbers.text import UnwritableError, spell
from interlock.constraints.schema.numbers.text import terminal as write


def _number(chooser: random.Random) -> Fraction:
    big = ["1e-6", "1.5e-7", "-2e10", "1e30", "-1e-3", "1e308", "9007199254740991"]
    return chooser.choice(
        [
            Fraction(chooser.randint(-20, 20)),
            Fraction(chooser.randint(-2000, 2000), 100),
            Fraction(chooser.randint(-30, 30), 10),
            Fraction(chooser.choice(big)),
        ]
    )


def _set(chooser: random.Random, depth: int = 2) -> NumberSet:
    kind = chooser.randrange(8 if depth else 5)
    if kind == 0:
        return at_least(_number(chooser), open_=chooser.random() < 0.5)
    if kind == 1:
        return at_most(_number(chooser), open_=chooser.random() < 0.5)
    if kind == 2:
        return INTEGERS
    if kind == 3:
        return multiples(
            chooser.choice(
                [Fraction(1, 100), Fraction(5), Fraction(2), Fraction(5, 2), Fraction(3), Fraction(60)]
            )
        )
    if kind == 4:
        return points([_number(chooser) for _ in range(3)])
    if kind == 5:
        return complement(_set(chooser, depth - 1))
    left, right = _set(chooser, depth - 1), _set(chooser, depth - 1)
    return union(left, right) if kind == 6 else intersect(left, right)


def written(cells: NumberSet, *, integers_only: bool = False) -> list[str]:
    """The terminal of a set, then the definitions of the terminals that it refers to."""
    names: dict[str, str] = {}

    def name(expression: str) -> str:
        return names.setdefault(expression, f"P{len(names)}")

    found = write(cells, name, integers_only=integers_only)
    return [found, *(f"{known}: {expression}" for expression, known in names.items())]


@pytest.mark.parametrize("modulus", [7, 9, 11, 23, 33, 99])
@pytest.mark.parametrize("negated", [False, True])
def test_multiples_are_counted_digit_by_digit(terminal, modulus: int, negated: bool) -> None:
    cells = multiples(Fraction(modulus))
    cells = intersect(INTEGERS, complement(cells)) if negated else cells
    grammar = terminal(*written(cells, integers_only=True))
    chooser = random.Random(modulus)
    for _ in range(60):
        value = chooser.randint(-(10**12), 10 ** chooser.randint(1, 12))
        for near in (value, value - value % modulus):
            assert grammar.accepts(str(near)) is (bool(near % modulus) == negated), near


def test_written_numbers_are_exactly_the_members(terminal) -> None:
    chooser = random.Random(7)
    values = [_number(chooser) for _ in range(40)]
    values += [
        value + step for value in values[:20] for step in (Fraction(1, 100), Fraction(-1), Fraction(1, 10))
    ]
    texts = {spell(value) for value in values} | {
        "-0",
        "0.0",
        "75.0",
        "1.50",
        "1e+30",
        "1e-06",
        "2.5e-09",
        "1E5",
    }
    for _ in range(70):
        cells = _set(chooser)
        if not cells:
            continue
        try:
            grammar = terminal(*written(cells))
        except UnwritableError:
            continue
        for text in texts:
            value = Fraction(text)
            accepted = grammar.accepts(text)
            assert not accepted or has(cells, value), (text, cells)
            if spell(value) == text and len(text) < 15:
                assert accepted or not has(cells, value), (text, cells)


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"type": "number", "exclusiveMinimum": 0}, ["0.1", "1", "3e-2"], ["0", "-1", "0.0"]),
        ({"type": "number", "minimum": 1, "maximum": 5}, ["1", "5", "4.99"], ["5.7", "0.9", "6"]),
        ({"type": "integer", "minimum": -5}, ["-5", "-1", "0", "77"], ["-6", "-", "1.0"]),
        ({"type": "number", "minimum": 4.0}, ["4.1", "4", "40"], ["3.9"]),
        ({"type": "number", "maximum": -4.0}, ["-4.1"], ["-3.9", "0"]),
        ({"type": "number", "minimum": -0.5, "maximum": 0.5}, ["-0", "-0.0", "-0.5", "0"], ["-0.51"]),
        ({"type": "integer", "minimum": 0}, ["0", "-0"], ["-0.0", "-1"]),
        ({"type": "number", "exclusiveMinimum": 0}, ["1e-9"], ["-0", "-0.0", "0e0"]),
        ({"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1}, [str(-(2**63)), str(2**64 - 1)], [str(-(2**63) - 1), str(2**64)]),
        ({"type": "integer", "minimum": -(10**30), "maximum": 10**30}, [str(10**30), str(-(10**30))], [str(10**30 + 1), str(-(10**30) - 1)]),
        ({"type": "integer", "maximum": 9007199254740991}, ["9007199254740991", "-9007199254740992"], ["9007199254740992"]),
        ({"type": "integer", "minimum": 10**400}, ["1" + "0" * 400], ["9" * 400]),
        ({"type": "integer", "minimum": 1e3, "maximum": 5000.0}, ["1000", "5000"], ["999", "5001"]),
        ({"type": "number", "maximum": 1e308}, ["1e+307", "1e-06", "-1e+300"], []),
        ({"type": "number", "multipleOf": 0.01}, ["1.25", "3", "75.0", "1.20"], ["1.255"]),
        ({"type": "integer", "multipleOf": 7}, ["0", "7", "-14"], ["8"]),
        ({"not": {"multipleOf": 3}, "type": "integer"}, ["1", "-2", "100"], ["0", "3", "-99"]),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, ["1", "2.5"], ["3", "1.5"]),
        ({"type": "number"}, ["1e+30", "-2.5e-09", "12.5"], ["01", "+1", ".5", "1.", "1e400", "NaN"]),
    ],
)  # fmt: skip
def test_numeric_keywords(schema, accepted, rejected, language) -> None:
    found = language(schema)
    assert [text for text in accepted if not found.accepts(text)] == []
    assert [text for text in rejected if found.accepts(text)] == []


EDGES = [
    "5e-324",
    "4.94e-324",
    "1e-323",
    "2.2250738585072014e-308",
    "1.7976931348623157e+308",
    "1e308",
    "1.79e308",
]


@pytest.mark.parametrize("bound", [{}, {"exclusiveMinimum": 0}, {"minimum": -1}])
def test_every_double_is_a_number_in_the_spelling_of_json(language, bound) -> None:
    found = language({"type": "number", **bound})
    chooser = random.Random(3)
    doubles = [struct.unpack("d", chooser.randbytes(8))[0] for _ in range(300)]
    texts = EDGES + [json.dumps(abs(value)) for value in doubles if math.isfinite(value) and value]
    assert [text for text in texts if not found.accepts(text)] == []
    nothing_or_too_much = ["2e-324", "1e-400", "1.8e308", "1.7977e308", "2e308", "1e309"]
    assert [text for text in nothing_or_too_much if found.accepts(text)] == []
    if not bound:
        assert [text for text in texts if not found.accepts(f"-{text}")] == []


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"type": "number", "minimum": 2}, ["1.7e308", "2e+00"], ["5e-324", "1e-320"]),
        ({"type": "number", "exclusiveMaximum": 2}, ["5e-324", "-1.7e308"], ["1e308"]),
        ({"type": "number", "exclusiveMinimum": 1e-323}, ["1e-300"], ["1.1e-323"]),
    ],
)
def test_bounds_at_the_ends_of_a_double(schema, accepted, rejected, language) -> None:
    found = language(schema)
    assert [text for text in accepted if not found.accepts(text)] == []
    assert [text for text in rejected if found.accepts(text)] == []
