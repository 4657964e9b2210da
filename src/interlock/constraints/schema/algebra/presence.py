"""Which keys an object has: a formula over key names and the number of keys.

A ``Presence`` is a conjunction: names that must be there, names that must not, bounds of the count, and
*factors*, each a disjunction of smaller conjunctions. Factors stay apart until one must know whether they
can hold together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

MAX_TERMS = 256
_MAX_TRIED = 4096


class Term(NamedTuple):
    """One conjunction."""

    need: frozenset[str] = frozenset()
    forbid: frozenset[str] = frozenset()
    low: int = 0
    high: int | None = None

    def __and__(self, other: Term) -> Term:
        return Term(
            self.need | other.need,
            self.forbid | other.forbid,
            max(self.low, other.low),
            other.high
            if self.high is None
            else self.high
            if other.high is None
            else min(self.high, other.high),
        )

    def names(self) -> frozenset[str]:
        return self.need | self.forbid

    @property
    def is_free(self) -> bool:
        return not (self.need or self.forbid or self.low) and self.high is None

    @property
    def consistent(self) -> bool:
        if self.need & self.forbid:
            return False
        return self.high is None or (self.low <= self.high and len(self.need) <= self.high)

    @property
    def order(self) -> tuple[int, list[str], list[str], int, int]:
        """Sorts terms, those that ask for little first."""
        names = sorted(self.need), sorted(self.forbid)
        return len(self.need) + len(self.forbid), *names, self.low, -1 if self.high is None else self.high

    def implies(self, other: Term) -> bool:
        """Everything that satisfies ``self`` satisfies ``other``."""
        return (
            other.need <= self.need
            and other.forbid <= self.forbid
            and (other.low <= self.low or other.low <= len(self.need))
            and (other.high is None or (self.high is not None and self.high <= other.high))
        )


_FREE: Final = Term()
Factor = frozenset[Term]


class Presence(NamedTuple):
    unit: Term = _FREE
    factors: frozenset[Factor] = frozenset()

    @property
    def trivial(self) -> bool:
        return not self.factors and self.unit.is_free

    def names(self) -> frozenset[str]:
        if not self.factors:
            return self.unit.need | self.unit.forbid
        return self.unit.need.union(
            self.unit.forbid, *(term.names() for factor in self.factors for term in factor)
        )


FREE: Final = Presence()


def need(names: Iterable[str]) -> Presence:
    return Presence(Term(need=frozenset(names)))


def forbid(names: Iterable[str]) -> Presence:
    return Presence(Term(forbid=frozenset(names)))


def count(low: int, high: int | None) -> Presence:
    return Presence(Term(low=low, high=high))


def any_of(terms: Iterable[Term]) -> Presence | None:
    """One of ``terms``; ``None`` if there are none."""
    return _build(Term(), [frozenset(terms)])


def meet(left: Presence, right: Presence) -> Presence | None:
    """Both, or ``None`` if that is impossible by the names alone."""
    if left.trivial or left == right:
        return right
    if right.trivial:
        return left
    unit = left.unit & right.unit
    if not (left.factors or right.factors):
        return Presence(unit) if unit.consistent else None
    return _build(unit, [*left.factors, *right.factors])


def _build(unit: Term, factors: list[Factor]) -> Presence | None:
    """Unit propagation."""
    pending = True
    while pending:
        pending = False
        if not unit.consistent:
            return None
        kept: list[Factor] = []
        for factor in factors:
            terms = {_without(term, unit) for term in factor if (term & unit).consistent}
            if _FREE in terms:
                continue
            if not terms:
                return None
            minimal = _absorb(terms)
            if len(minimal) == 1:
                unit &= next(iter(minimal))
                pending = True
            else:
                kept.append(minimal)
        factors = kept
    return Presence(unit, frozenset(factors))


def _without(term: Term, unit: Term) -> Term:
    """What ``term`` asks beyond ``unit``."""
    return Term(
        term.need - unit.need,
        term.forbid - unit.forbid,
        0 if term.low <= max(unit.low, len(unit.need)) else term.low,
        None if term.high is None or (unit.high is not None and unit.high <= term.high) else term.high,
    )


def _absorb(terms: Iterable[Term]) -> Factor:
    ordered = sorted(set(terms), key=lambda term: term.order)
    out: list[Term] = []
    for term in ordered:
        if not any(term.implies(other) for other in out):
            out.append(term)
    return frozenset(out)


def implies(left: Presence, right: Presence) -> bool:
    """True only if everything that satisfies ``left`` satisfies ``right``."""
    if right.trivial:
        return True
    if not right.factors:
        return left.unit.implies(right.unit)
    return meet(left, right) == left


def join(left: Presence, right: Presence) -> Presence | None:
    """One or the other; ``None`` if that formula would be too large."""
    if left.trivial or right.trivial:
        return FREE
    if left == right:
        return left
    common = left.factors & right.factors
    first = expand(left.unit, left.factors - common)
    second = expand(right.unit, right.factors - common)
    if first is None or second is None or len(first) + len(second) > MAX_TERMS:
        return None
    shared = Term(left.unit.need & right.unit.need, left.unit.forbid & right.unit.forbid)
    return _build(shared, [frozenset([*first, *second]), *common])


def expand(unit: Term, factors: Iterable[Factor]) -> list[Term] | None:
    """The formula as one disjunction, inconsistent terms left out; ``None`` if it is too large."""
    terms = [unit]
    for factor in factors:
        found = {joined for term in terms for other in factor if (joined := term & other).consistent}
        if len(found) > MAX_TERMS:
            return None
        terms = sorted(_absorb(found), key=lambda term: term.order)
    return terms


def terms(presence: Presence) -> list[Term] | None:
    return expand(presence.unit, presence.factors)


def is_possible(presence: Presence, fits: Callable[[Term], bool]) -> bool:
    """The formula has a term that ``fits``, which may only turn from true to false as a term asks for more; also
    where that is not found out in bounded time."""
    if not presence.factors:
        return fits(presence.unit)
    choices = sorted((sorted(factor, key=lambda term: term.order) for factor in presence.factors), key=_width)
    pending = [(presence.unit, 0)]
    for _ in range(_MAX_TRIED):
        if not pending:
            return False
        unit, index = pending.pop()
        if index == len(choices):
            return True
        joined = [unit & term for term in reversed(choices[index])]
        pending += [(term, index + 1) for term in joined if term.consistent and fits(term)]
    return True


def _width(choices: list[Term]) -> tuple[int, list[tuple[int, list[str], list[str], int, int]]]:
    return len(choices), [term.order for term in choices]


def groups(presence: Presence) -> list[list[Term]] | None:
    """The factors, multiplied out where they share names or counts: disjunctions that can be judged one by
    one. The unit is not among them. ``None`` if one is too large."""
    if not presence.factors:
        return []
    ordered = sorted(presence.factors, key=lambda factor: sorted(term.order for term in factor))
    pending = [(factor, _touches(factor)) for factor in ordered]
    out: list[tuple[list[Factor], set[str | None]]] = []
    for factor, touched in pending:
        joined: tuple[list[Factor], set[str | None]] = ([factor], set(touched))
        rest = []
        for group in out:
            if group[1] & joined[1]:
                joined = (group[0] + joined[0], group[1] | joined[1])
            else:
                rest.append(group)
        out = [*rest, joined]
    expanded = []
    for factors, _ in out:
        found = expand(Term(), factors)
        if found is None:
            return None
        expanded.append(found)
    return expanded


def _touches(factor: Factor) -> set[str | None]:
    out: set[str | None] = set()
    for term in factor:
        out |= term.need | term.forbid
        if term.low or term.high is not None:
            out.add(None)
    return out
