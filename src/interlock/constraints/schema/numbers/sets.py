"""Sets of numbers as unions of cells, closed under union, intersection and complement; exact at any size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

MAX_CELLS = 2000
MAX_PAIRS = 50 * MAX_CELLS
_MAX_POINTS = 64  # bounded multiples are listed up to this many


@dataclass(frozen=True, slots=True)
class Cell:
    """Numbers between two bounds (``None``: unbounded) that are multiples of ``step`` (``None``: all numbers)
    and of none of ``nots``."""

    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    step: Fraction | None = None
    nots: frozenset[Fraction] = frozenset()

    @property
    def point(self) -> Fraction | None:
        return self.low if self.low is not None and self.low == self.high else None

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts cells, the same way in every process."""
        bounds = (self.low is not None, self.low or 0, self.low_open, self.high is None, self.high or 0)
        return *bounds, self.high_open, self.step or 0, sorted(self.nots)

    def has(self, value: Fraction) -> bool:
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.high_open and value == self.high)):
            return False
        if self.step is not None and (value / self.step).denominator != 1:
            return False
        return all((value / step).denominator != 1 for step in self.nots)


NumberSet = frozenset[Cell]
ALL: NumberSet = frozenset({Cell()})
NOTHING: NumberSet = frozenset()
INTEGERS: NumberSet = frozenset({Cell(step=Fraction(1))})


class TooManyCellsError(ValueError):
    """The set needs more cells than allowed."""

    def __init__(self) -> None:
        super().__init__(f"numbers: more than {MAX_CELLS} alternatives, or {MAX_PAIRS} pairs of them")


def fraction(value: float | Decimal) -> Fraction:
    """The exact value of a number as it stands in JSON text (``0.1`` is a tenth)."""
    if isinstance(value, float):
        return Fraction(repr(value))
    return Fraction(value)


def points(values: Iterable[Fraction]) -> NumberSet:
    return frozenset(Cell(low=value, high=value) for value in values)


def at_least(value: Fraction, *, open_: bool = False) -> NumberSet:
    return frozenset({Cell(low=value, low_open=open_)})


def at_most(value: Fraction, *, open_: bool = False) -> NumberSet:
    return frozenset({Cell(high=value, high_open=open_)})


def multiples(step: Fraction) -> NumberSet:
    return frozenset({Cell(step=abs(step))})


def union(left: NumberSet, right: NumberSet) -> NumberSet:
    if Cell() in left or Cell() in right:
        return ALL
    cells = left | right
    plain = {cell for cell in cells if cell.point is None}
    return frozenset(
        cell for cell in cells if cell.point is None or not any(other.has(cell.point) for other in plain)
    )


def intersect(left: NumberSet, right: NumberSet) -> NumberSet:
    if left in (ALL, right):
        return right
    if right == ALL:
        return left
    if len(left) * len(right) > MAX_PAIRS:
        raise TooManyCellsError
    out: set[Cell] = set()
    for first in left:
        for second in right:
            out |= _meet(first, second)
    if len(out) > MAX_CELLS:
        raise TooManyCellsError
    return frozenset(out)


def complement(cells: NumberSet) -> NumberSet:
    single = sorted(cell.point for cell in cells if cell.point is not None)
    out = _without_points(single)
    for cell in cells:
        if cell.point is None:
            out = intersect(out, _complement(cell))
    return out


def has(cells: NumberSet, value: Fraction) -> bool:
    return any(cell.has(value) for cell in cells)


def members(cells: NumberSet, limit: int) -> list[Fraction] | None:
    """All members in order, or ``None`` if there are more than ``limit`` or infinitely many."""
    if len(cells) > limit or any(cell.point is None for cell in cells):
        return None
    return sorted(cell.point for cell in cells if cell.point is not None)


def _without_points(values: list[Fraction]) -> NumberSet:
    out: set[Cell] = set()
    last: Fraction | None = None
    for value in values:
        out.add(Cell(low=last, low_open=last is not None, high=value, high_open=True))
        last = value
    out.add(Cell(low=last, low_open=last is not None))
    return frozenset(out)


def _complement(cell: Cell) -> NumberSet:
    out: set[Cell] = set()
    if cell.low is not None:
        out.add(Cell(high=cell.low, high_open=not cell.low_open))
    if cell.high is not None:
        out.add(Cell(low=cell.high, low_open=not cell.high_open))
    inside = (cell.low, cell.low_open, cell.high, cell.high_open)
    if cell.step is not None:
        out |= _normal(Cell(*inside, nots=frozenset({cell.step})))
    for step in cell.nots:
        out |= _normal(Cell(*inside, step=step if cell.step is None else _lcm(step, cell.step)))
    return frozenset(out)


def _meet(left: Cell, right: Cell) -> set[Cell]:
    low, low_open = left.low, left.low_open
    if right.low is not None and (low is None or (right.low, right.low_open) > (low, low_open)):
        low, low_open = right.low, right.low_open
    high, high_open = left.high, left.high_open
    if right.high is not None and (high is None or (right.high, not right.high_open) < (high, not high_open)):
        high, high_open = right.high, right.high_open
    step = left.step if right.step is None else right.step if left.step is None else _lcm(left.step, right.step)
    return _normal(Cell(low, low_open, high, high_open, step, left.nots | right.nots))


def _lcm(left: Fraction, right: Fraction) -> Fraction:
    return Fraction(math.lcm(left.numerator, right.numerator), math.gcd(left.denominator, right.denominator))


def _normal(cell: Cell) -> set[Cell]:
    """The cell with useless parts dropped, as points where few numbers are left, nothing if empty."""
    low, high, step = cell.low, cell.high, cell.step
    if low is not None and high is not None:
        if low > high or (low == high and (cell.low_open or cell.high_open)):
            return set()
        if low == high:
            return {Cell(low=low, high=low)} if cell.has(low) else set()
    nots = cell.nots
    if step is not None:
        if any((step / other).denominator == 1 for other in nots):
            return set()
        low, low_open = _snap(low, cell.low_open, step, up=True)
        high, high_open = _snap(high, cell.high_open, step, up=False)
        if low is not None and high is not None:
            if low > high:
                return set()
            count = (high - low) / step + 1
            if count <= _MAX_POINTS:
                values = (low + step * index for index in range(int(count)))
                return {Cell(low=value, high=value) for value in values if cell.has(value)}
        return {Cell(low, low_open, high, high_open, step, nots)}
    minimal = frozenset(n for n in nots if not any(n != m and (n / m).denominator == 1 for m in nots))
    return {Cell(low, cell.low_open, high, cell.high_open, None, minimal)}


def _snap(bound: Fraction | None, is_open: bool, step: Fraction, *, up: bool) -> tuple[Fraction | None, bool]:
    """The nearest multiple inside the bound."""
    if bound is None:
        return None, False
    quotient = bound / step
    index = math.ceil(quotient) if up else math.floor(quotient)
    if is_open and index == quotient:
        index += 1 if up else -1
    return step * index, False
