"""How the numbers of a set are written: one terminal expression for a whole ``NumberSet``.

Integers have no fraction and no exponent. Other numbers are plain decimals, or one digit, fraction and
exponent as ``repr`` of a float has it. Intervals, multiples and exclusions are separate regexes over
this text, combined by ``&`` and ``~``.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import lru_cache

from interlock.constraints.schema.numbers.bounds import EXPONENT_FORM, above, below
from interlock.constraints.schema.numbers.modulo import MAX_MODULUS, Name, divisible, prime_powers
from interlock.constraints.schema.numbers.sets import Cell, NumberSet, members

MAX_SUFFIXES = 2000
_INTEGER = "-?(0|[1-9][0-9]*)"
_DECIMAL = "-?(0|[1-9][0-9]*)(\\.[0-9]+)?"
_EXACT = 2**31
_MAX_NATIVE_STEP = 10_000  # the engine builds a state for each remainder


class UnwritableError(ValueError):
    """No regex of reasonable size says this set."""


def terminal(cells: NumberSet, name: Name, *, integers_only: bool) -> str:
    """A Lark terminal expression. ``integers_only``: values of type ``integer`` are written without fraction,
    others may carry ``.0``. ``name``: gives a part that is used often a name. Raises ``UnwritableError``."""
    if len(cells) == 1:
        (cell,) = cells
        if cell.low is None or cell.high is None:
            return _cell(cell, name)
    finite = members(cells, len(cells))
    if finite is not None:
        return f"/{'|'.join(_point(value, integers_only) for value in finite)}/"
    parts = []
    singles = [cell.point for cell in cells if cell.point is not None]
    if singles:
        parts.append(f"/{'|'.join(sorted(_point(value, integers_only) for value in singles))}/")
    wide = (cell for cell in cells if cell.point is None)
    parts += sorted(_cell(cell, name) for cell in sorted(wide, key=lambda cell: cell.order))
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def native(cells: NumberSet) -> str | None:
    """A rule body in llguidance's own JSON Schema for one cell of multiples that no short regex says, ``None``
    where that would not be exact."""
    if len(cells) != 1:
        return None
    (cell,) = cells
    bounds = [bound for bound in (cell.low, cell.high) if bound is not None]
    if cell.step is None or cell.step.denominator != 1 or cell.nots or cell.step > _MAX_NATIVE_STEP:
        return None
    if any(bound.denominator != 1 or abs(bound) >= _EXACT for bound in bounds):
        return None
    schema = {"type": "integer", "multipleOf": int(cell.step), "x-guidance": {"whitespace_flexible": False}}
    if cell.low is not None:
        schema["minimum"] = int(cell.low)
    if cell.high is not None:
        schema["maximum"] = int(cell.high)
    return f"%json {json.dumps(schema)}"


def spell(value: Fraction) -> str:
    """The canonical decimal text of a number. Raises ``UnwritableError`` for what has no finite decimal."""
    if value.denominator == 1:
        return str(value.numerator)
    places = decimal_places(value)
    if places is None:
        raise UnwritableError("a number has no finite decimal")
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def decimal_places(value: Fraction) -> int | None:
    """Digits after the point, ``None`` if no number of them is enough."""
    twos, fives, rest = _smooth(value.denominator)
    return max(twos, fives) if rest == 1 else None


def _smooth(number: int) -> tuple[int, int, int]:
    twos = fives = 0
    while number % 2 == 0:
        number, twos = number // 2, twos + 1
    while number % 5 == 0:
        number, fives = number // 5, fives + 1
    return twos, fives, number


def _point(value: Fraction, integers_only: bool) -> str:
    text = spell(value).replace(".", "\\.")
    if value == 0 and not integers_only:
        return "-?0(\\.0)?"
    if value.denominator == 1:
        return text if integers_only else f"{text}(\\.0)?"
    forms = [text]
    exponent = repr(float(value))
    if "e" in exponent and Fraction(exponent) == value:
        forms.append(exponent.replace(".", "\\.").replace("+", "\\+"))
    return "|".join(forms)


def _cell(cell: Cell, name: Name) -> str:
    is_common = not cell.nots and (cell.step is None or cell.step == 1)
    return _common(cell) if is_common else _written(cell, name)


@lru_cache(maxsize=512)
def _common(cell: Cell) -> str:
    """Without a divisor that has a name."""
    return _written(cell, str)


def _written(cell: Cell, name: Name) -> str:
    if cell.step is None:
        operands = [f"/{_DECIMAL}/"]
        if not cell.nots:
            operands = [f"/{_DECIMAL}|{EXPONENT_FORM}/"]
    else:
        operands = [_multiples(cell.step, name, padded=cell.step.denominator != 1)]
    integral = cell.step is not None and cell.step.denominator == 1
    plain = integral or bool(cell.nots) or cell.step is not None
    for bound, is_open, side in ((cell.low, cell.low_open, above), (cell.high, cell.high_open, below)):
        if bound is not None:
            operands.append(f"/{side(_finite(bound), is_open, plain=plain)}/")
    operands += [f"~({_multiples(step, name, padded=True)})" for step in sorted(cell.nots)]
    strict = (cell.low_open and cell.low not in (None, 0)) or (cell.high_open and cell.high not in (None, 0))
    if (strict or cell.nots) and cell.step is None:
        # up to 15 digits two decimals never become the same double: what differs here differs for every reader
        operands.append("/-?[0-9]+|-?[0-9.]{1,16}|-?[0-9.]{1,16}[eE][+-]?[0-9]+/")
    return operands[0] if len(operands) == 1 else f"({' & '.join(operands)})"


def _finite(bound: Fraction) -> Fraction:
    if decimal_places(bound) is None:
        raise UnwritableError("a bound has no finite decimal")
    return bound


def _multiples(step: Fraction, name: Name, *, padded: bool) -> str:
    """Terminal expression of the plain decimals that are multiples of ``step``; ``padded``: with any trailing
    zeros."""
    shape, rest = _ended(step.numerator, step.denominator, padded)
    # a digit string keeps its divisibility by ``rest`` when zeros are appended
    counted = []
    for power in prime_powers(rest):
        if power > MAX_MODULUS:
            raise UnwritableError(f"multipleOf needs a count modulo {power}; at most {MAX_MODULUS} is possible")
        counted.append(f'("-"? {divisible(power, name)})')
    return f"({' & '.join([shape, *counted])})" if counted else shape


@lru_cache(maxsize=256)
def _ended(numerator: int, denominator: int, padded: bool) -> tuple[str, int]:
    """Decimals whose last digits allow a multiple, and the factor of the step that these do not tell."""
    step = Fraction(numerator, denominator)
    places = decimal_places(step)
    if places is None:
        raise UnwritableError("multipleOf has no finite decimal")
    twos, fives, rest = _smooth(int(step * 10**places))
    forms = [_endings(2**twos * 5**fives, digits, places, padded=padded) for digits in range(places + 1)]
    return f"/-?({'|'.join(forms)})/", rest


def _endings(period: int, places: int, scale: int, *, padded: bool) -> str:
    """Decimals with exactly ``places`` digits after the point that, with ``scale`` digits there, are multiples of
    ``period`` when read as one integer; ``period`` has no factors but 2 and 5."""
    period //= math.gcd(period, 10 ** (scale - places))
    tail = ("(\\.0+)?" if places == 0 else "0*") if padded else ""
    twos, fives, _ = _smooth(period)
    suffix = max(twos, fives)
    if suffix > 300 or 10**suffix // period > MAX_SUFFIXES:
        raise UnwritableError(f"multipleOf has more than {MAX_SUFFIXES} endings")
    if suffix <= places:
        ending = _fraction_endings(period, suffix, places)
        return f"(0|[1-9][0-9]*){ending}{tail}"
    ends = [str(value) for value in range(0, 10**suffix, period)]
    long_ends = "|".join(_dotted(text.rjust(suffix, "0"), places) for text in ends)
    short_ends = "|".join(_dotted(text.rjust(places + 1, "0"), places) for text in ends)
    return f"([1-9][0-9]*({long_ends})|{short_ends}){tail}"


def _fraction_endings(period: int, suffix: int, places: int) -> str:
    if places == 0:
        return ""
    free = places - suffix
    start = f"\\.[0-9]{{{free}}}" if free else "\\."
    if suffix == 0:
        return start
    ends = "|".join(str(value).rjust(suffix, "0") for value in range(0, 10**suffix, period))
    return f"{start}({ends})"


def _dotted(text: str, places: int) -> str:
    return f"{text[:-places]}\\.{text[-places:]}" if places else text
