"""Intersections over a small alphabet: what cannot occur in one operand need not be spelled in the others."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.lang import alt, cat, negate, one_of, repeat, words
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat, Words


def narrowed(items: frozenset[Lang]) -> list[Lang]:
    """Operands with the same intersection, their classes cut down to the characters that all can contain."""
    shared = chars.ALL
    for item in items:
        if item.plain:
            shared = chars.intersect(shared, alphabet(item))
    if shared == chars.ALL:
        return list(items)
    return [item if item.plain and alphabet(item) == shared else restrict(item, shared) for item in items]


@lru_cache(maxsize=8192)
def alphabet(lang: Lang) -> Ranges:
    """Every character that occurs in a word of a plain language."""
    match lang:
        case Words(words=found):
            return chars.of("".join(found)) if len(found) < 256 else chars.ALL
        case Chars(ranges=ranges):
            return ranges
        case Cat(items=items) | Alt(items=items):
            return chars.from_ranges(chain.from_iterable(set(map(alphabet, items))))
        case Repeat(item=item):
            return alphabet(item)
    return chars.ALL


def endings(lang: Lang) -> Ranges:
    """The characters that a word may end with, and maybe more."""
    match lang:
        case Words(words=found):
            return chars.of("".join(word[-1:] for word in found))
        case Chars(ranges=ranges):
            return ranges
        case Cat(items=items):
            size = next((size for size, item in enumerate(reversed(items), 1) if not item.nullable), len(items))
            return chars.from_ranges(chain.from_iterable(map(endings, items[-size:])))
        case Alt(items=items):
            return chars.from_ranges(chain.from_iterable(map(endings, items)))
        case Repeat(item=item):
            return endings(item)
    return chars.ALL


def restrict(lang: Lang, allowed: Ranges) -> Lang:
    """A language with the same words over ``allowed``; what it says of other words is left open."""
    match lang:
        case Words(words=found):
            return words(word for word in found if all(chars.contains(allowed, ord(char)) for char in word))
        case Chars(ranges=ranges):
            return one_of(chars.intersect(ranges, allowed))
        case Cat(items=items):
            return cat(*(restrict(item, allowed) for item in items))
        case Alt(items=options):
            return alt(restrict(item, allowed) for item in options)
        case And(items=options):
            return And(frozenset(restrict(item, allowed) for item in options))
        case Not(item=item):
            return negate(restrict(item, allowed))
        case Repeat(item=item, low=low, high=high):
            return repeat(restrict(item, allowed), low, high)
    raise AssertionError(lang)
