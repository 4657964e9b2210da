"""Questions about languages, answered by derivatives: membership, emptiness, a short member."""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush
from typing import TypeGuard

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.lang import NONE, Matcher, both, derive
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat, Words

_MAX_EXAMPLE = 5000


def accepts(lang: Lang, word: str) -> bool:
    return Matcher(lang).accepts(word)


def _has_no_word(lang: Lang, max_states: int) -> bool:
    """No word is found, and there are not more than ``max_states`` derivatives. Small ones come first: they are near
    the end of a word."""
    seen = {lang}
    frontier = [(lang.size, 0, lang)]
    while frontier:
        state = heappop(frontier)[2]
        if state.nullable or isinstance(state, Words):
            return False
        for char in representatives(state):
            derived = derive(state, char)
            if derived is NONE or derived in seen:
                continue
            if derived.nullable or len(seen) >= max_states:
                return False
            seen.add(derived)
            heappush(frontier, (derived.size, len(seen), derived))
    return True


@lru_cache(maxsize=16384)
def is_empty(lang: Lang, max_states: int = 400) -> bool:
    """True only if ``lang`` is proven to have no word."""
    if lang.plain:
        return lang is NONE
    if isinstance(lang, And) and _has_example(lang):
        return False
    return _has_no_word(lang, max_states)


def _has_example(lang: And) -> bool:
    """A cheap guess: a short word of one operand is in the others too, or short words of all of them in a row."""
    low = max((item.low for item in lang.items if _is_length(item)), default=0)
    plain = sorted((item for item in lang.items if item.plain and not _is_length(item)), key=lambda i: i.size)
    matcher = Matcher(lang)
    for extra in dict.fromkeys((0, min(low, _MAX_EXAMPLE))):
        words = [example(item, extra) for item in plain]
        if len(words) > 1:
            words.append("".join(words)[: 2 * _MAX_EXAMPLE])
        if any(map(matcher.accepts, words)):
            return True
    return False


def _is_length(lang: Lang) -> TypeGuard[Repeat]:
    return isinstance(lang, Repeat) and isinstance(lang.item, Chars) and lang.item.ranges == chars.ALL


def example(lang: Lang, extra: int) -> str:
    """A short word of a plain language that is not empty; unbounded repeats go ``extra`` rounds further."""
    match lang:
        case Words(words=found):
            return min(found, key=lambda word: (len(word), word))
        case Chars(ranges=ranges):
            return chr(next((low for low, _ in ranges if 0x30 <= low < 0x7F), ranges[0][0]))
        case Cat(items=items):
            return "".join(example(item, extra) for item in items)
        case Alt(items=items):
            return min((example(item, extra) for item in items), key=lambda word: (len(word), word))
        case Repeat(item=item, low=low, high=high):
            times = low if high is not None else low + extra
            return example(item, 0) * min(times, _MAX_EXAMPLE)
    raise AssertionError(lang)


def disjoint(left: Lang, right: Lang) -> bool:
    """True only if no word is in both; cheap for literal prefixes."""
    return is_empty(both(left, right))


def representatives(lang: Lang) -> list[str]:
    """One character of each class that ``derive`` may tell apart, readable ones first."""
    classes = first_classes(lang)
    marks = sorted(
        {low for ranges in classes for low, _ in ranges} | {h + 1 for r in classes for _, h in r} | {0}
    )
    signatures: dict[int, int] = {}
    ordered = sorted(classes)
    positions = [0] * len(ordered)
    for mark in marks:
        if mark > chars.MAX or 0xD800 <= mark <= 0xDFFF:
            continue
        signature = 0
        for index, ranges in enumerate(ordered):
            at = positions[index]
            while at < len(ranges) and ranges[at][1] < mark:
                at += 1
            positions[index] = at
            if at < len(ranges) and ranges[at][0] <= mark:
                signature |= 1 << index
        known = signatures.get(signature)
        if known is None or (known < 0x21 <= mark < 0x7F):
            signatures[signature] = mark
    return [chr(code) for code in sorted(signatures.values(), key=lambda code: (not 0x20 < code < 0x7F, code))]


def first_classes(lang: Lang) -> set[Ranges]:
    """The classes of characters that a word may begin with, as they stand in ``lang``."""
    out: set[Ranges] = set()
    _heads(lang, out)
    return out


def _heads(lang: Lang, out: set[Ranges]) -> None:
    if isinstance(lang, Words):
        out.update(((ord(c), ord(c)),) for c in {word[0] for word in lang.words if word})
    elif isinstance(lang, Chars):
        out.add(lang.ranges)
    elif isinstance(lang, Cat):
        for item in lang.items:
            _heads(item, out)
            if not item.nullable:
                break
    elif isinstance(lang, (Alt, And)):
        for item in lang.items:
            _heads(item, out)
    elif isinstance(lang, (Not, Repeat)):
        _heads(lang.item, out)
