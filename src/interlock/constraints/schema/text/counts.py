"""Patterns whose states no engine can follow."""

from __future__ import annotations

from itertools import pairwise, starmap

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.derive import first_classes
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat

_MANY = 16


def guesses_counts(lang: Lang) -> bool:
    r"""A counted repeat of parts each of which counts characters and ends with one that it may count as well, as in
    ``(.{1,63}\.){1,127}``: which of the many possible ends is meant shows only at the end of the text."""
    match lang:
        case Repeat(item=Cat(items=items), high=int(high)) if high >= _MANY:
            return any(starmap(_counts_its_end, pairwise(items))) or any(map(guesses_counts, items))
        case Repeat(item=item) | Not(item=item):
            return guesses_counts(item)
        case Cat(items=items) | Alt(items=items) | And(items=items):
            return any(map(guesses_counts, items))
    return False


def _counts_its_end(item: Lang, after: Lang) -> bool:
    match item:
        case Repeat(item=Chars(ranges=ranges), low=low, high=int(high)) if high >= _MANY and low < high:
            return not after.nullable and any(chars.intersect(ranges, one) for one in first_classes(after))
    return False
