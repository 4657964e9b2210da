"""Regular languages over code points: an immutable syntax tree with simplifying constructors.

Use the functions (``cat``, ``alt``, ``both``, ``negate``, ``repeat``...), never the classes: they keep
trees small, fold finite sets to ``Words`` and give equal languages of common form equal trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.chars import Ranges
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat, Words

_SMALL = 64  # derivatives of languages up to this size are remembered: neighbouring states share them

NONE: Final[Lang] = Words(frozenset())
EMPTY: Final[Lang] = Words(frozenset({""}))
_ANY_CHAR: Final[Lang] = Chars(chars.ALL)
ANY: Final[Lang] = Repeat(_ANY_CHAR, 0, None)


def words(values: Iterable[str]) -> Lang:
    return _finite(frozenset(values))


def _finite(found: frozenset[str]) -> Lang:
    """``NONE``, ``EMPTY`` and ``ANY`` are single objects, so that they can be compared by identity."""
    if not found:
        return NONE
    return EMPTY if len(found) == 1 and "" in found else Words(found)


def one_of(ranges: Ranges) -> Lang:
    """One character out of ``ranges``."""
    if not ranges:
        return NONE
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _finite(frozenset({chr(ranges[0][0])}))
    return _ANY_CHAR if ranges == chars.ALL else Chars(ranges)


def length(low: int, high: int | None) -> Lang:
    """Every string of ``low`` to ``high`` code points."""
    return repeat(_ANY_CHAR, low, high)


def cat(*parts: Lang) -> Lang:
    out: list[Lang] = []
    for part in parts:
        for item in part.items if isinstance(part, Cat) else (part,):
            if item is NONE:
                return NONE
            if item is EMPTY:
                continue
            if out and isinstance(item, Words) and isinstance(out[-1], Words):
                joined = _join(out[-1], item)
                if joined is not None:
                    out[-1] = joined
                    continue
            if item is ANY and out and out[-1] is ANY:
                continue
            turned = _turned(out[-1], item) if out else None
            if turned is not None:
                out[-1:] = [item, turned]
                continue
            out.append(item)
    if len(out) > 1 and any(map(_is_open, out)):
        out = [part for part in _without_absorbed(out) if part is not EMPTY]
    if not out:
        return EMPTY
    return out[0] if len(out) == 1 else Cat(tuple(out))


def _turned(repeated: Lang, item: Lang) -> Lang | None:
    """``(ab)*a`` is ``a(ba)*``, where the engine need not guess which ``a`` is the last."""
    if not (isinstance(repeated, Repeat) and isinstance(repeated.item, Cat) and repeated.item.items[0] == item):
        return None
    return repeat(cat(*repeated.item.items[1:], item), repeated.low, repeated.high)


def _is_open(item: Lang) -> bool:
    return isinstance(item, Repeat) and item is not ANY and item.low != item.high


def _without_absorbed(items: list[Lang]) -> Iterator[Lang]:
    """Beside ``ANY`` a repeat takes no more rounds than it must: a search for ``x+`` is one for ``x``."""
    for index, item in enumerate(items):
        beside = items[max(index - 1, 0) : index + 2]
        is_absorbed = _is_open(item) and any(other is ANY for other in beside)
        yield repeat(item.item, item.low, item.low) if is_absorbed and isinstance(item, Repeat) else item


def _join(left: Words, right: Words) -> Lang | None:
    if len(left.words) == 1 and len(right.words) == 1:
        return _finite(frozenset(a + b for a in left.words for b in right.words))
    return None


def alt(parts: Iterable[Lang]) -> Lang:
    finite: set[str] = set()
    ranges: Ranges = ()
    rest: set[Lang] = set()
    pending = list(parts)
    while pending:
        part = pending.pop()
        if isinstance(part, Alt):
            pending.extend(part.items)
        elif isinstance(part, Words):
            finite |= part.words
        elif isinstance(part, Chars):
            ranges = chars.union(ranges, part.ranges)
        elif part is ANY:
            return ANY
        else:
            rest.add(part)
    for part in rest:
        if isinstance(part, Not) and part.item in rest:
            return ANY
    if ranges:
        single = {word for word in finite if len(word) == 1}
        ranges = chars.union(ranges, chars.of("".join(single)))
        finite -= single
        rest.add(one_of(ranges))
    if "" in finite and any(part.nullable for part in rest):
        finite.discard("")
    if finite:
        rest.add(_finite(frozenset(finite)))
    if not rest:
        return NONE
    return next(iter(rest)) if len(rest) == 1 else Alt(frozenset(rest))


def either(left: Lang, right: Lang) -> Lang:
    return alt((left, right))


def alternatives(lang: Lang) -> list[Lang]:
    """Parts of a union that are better terminals of their own: the engine follows a set of intersections and
    complements at a fraction of what their union takes."""
    if not isinstance(lang, Alt) or sum(not item.plain for item in lang.items) < 2:
        return [lang]
    plain = [item for item in lang.items if item.plain]
    rest = sorted((item for item in lang.items if not item.plain), key=repr)
    return [alt(plain), *rest] if plain else rest


def both(*parts: Lang) -> Lang:
    """Intersection."""
    pending = list(parts)
    rest: set[Lang] = set()
    low, high = 0, None
    finite: frozenset[str] | None = None
    while pending:
        part = pending.pop()
        if isinstance(part, And):
            pending.extend(part.items)
        elif isinstance(part, Words):
            finite = part.words if finite is None else finite & part.words
        elif isinstance(part, Repeat) and part.item is _ANY_CHAR:
            low = max(low, part.low)
            high = part.high if high is None else high if part.high is None else min(high, part.high)
        else:
            rest.add(part)
    if high is not None and low > high:
        return NONE
    if finite is not None:
        return _filter(finite, rest, low, high)
    return _both_infinite(rest, low, high)


def _filter(finite: frozenset[str], rest: set[Lang], low: int, high: int | None) -> Lang:
    excluded = [part.item.words for part in rest if isinstance(part, Not) and isinstance(part.item, Words)]
    finite = finite.difference(*excluded)
    if len(excluded) == len(rest) and low == 0 and high is None:
        return _finite(finite)
    matchers = [Matcher(part) for part in rest]
    return _finite(
        frozenset(
            word
            for word in finite
            if len(word) >= low
            and (high is None or len(word) <= high)
            and all(matcher.accepts(word) for matcher in matchers)
        )
    )


def _both_infinite(rest: set[Lang], low: int, high: int | None) -> Lang:
    classes = [part for part in rest if isinstance(part, Chars)]
    if classes:
        ranges = classes[0].ranges
        for part in classes[1:]:
            ranges = chars.intersect(ranges, part.ranges)
        if not ranges or low > 1 or high == 0:
            return NONE
        rest = {part for part in rest if not isinstance(part, Chars)}
        if not rest:
            return one_of(ranges)
        rest.add(one_of(ranges))
    bound = length(low, high)
    if bound is not ANY and not classes:
        rest = {_clamp(part, low, high) for part in rest}
        if NONE in rest:
            return NONE
        if not any(isinstance(part, Repeat) and _single(part.item) for part in rest):
            rest.add(bound)
    if not rest:
        return ANY
    if any(isinstance(item, Not) and item.item in rest for item in rest):
        return NONE
    if len(rest) == 1:
        return next(iter(rest))
    heads = _merge_heads(rest)
    return heads if heads is not None else And(frozenset(rest))


def _single(lang: Lang) -> bool:
    return isinstance(lang, Chars) or (isinstance(lang, Words) and all(len(word) == 1 for word in lang.words))


def _clamp(part: Lang, low: int, high: int | None) -> Lang:
    """``[a-z]+`` under length bounds is ``[a-z]{low,high}``."""
    if isinstance(part, Repeat) and _single(part.item):
        top = part.high if high is None else high if part.high is None else min(high, part.high)
        bottom = max(low, part.low)
        return NONE if top is not None and bottom > top else repeat(part.item, bottom, top)
    return part


def _merge_heads(rest: set[Lang]) -> Lang | None:
    """``x·Σ*`` and ``y·R`` for two classes: ``(x∩y)·R``. Keeps word boundaries out of intersections."""
    if len(rest) != 2:
        return None
    left, right = rest
    for first, second in ((left, right), (right, left)):
        if not (isinstance(first, Cat) and len(first.items) == 2 and first.items[1] is ANY):
            continue
        head = first.items[0]
        if isinstance(head, Chars) and isinstance(second, Cat) and isinstance(second.items[0], Chars):
            ranges = chars.intersect(head.ranges, second.items[0].ranges)
            return cat(one_of(ranges), *second.items[1:])
        if isinstance(head, Chars) and isinstance(second, Cat) and isinstance(second.items[0], Words):
            finite = second.items[0].words
            if "" not in finite:
                kept = words(word for word in finite if chars.contains(head.ranges, ord(word[0])))
                return cat(kept, *second.items[1:])
    return None


def negate(part: Lang) -> Lang:
    if isinstance(part, Not):
        return part.item
    if part is ANY:
        return NONE
    if part is NONE:
        return ANY
    if isinstance(part, Repeat) and part.item is _ANY_CHAR:
        below = length(0, part.low - 1) if part.low else NONE
        above = length(part.high + 1, None) if part.high is not None else NONE
        return alt((below, above))
    return Not(part)


def repeat(part: Lang, low: int, high: int | None) -> Lang:
    if high is not None and low > high:
        return NONE
    if high == 0:
        return EMPTY
    if part is NONE:
        return EMPTY if low == 0 else NONE
    if part is EMPTY or (low == 1 and high == 1):
        return part
    if part is _ANY_CHAR and low == 0 and high is None:
        return ANY
    if isinstance(part, Repeat) and part.low <= 1 and part.high is None:
        # (x*){..} and (x+){..}: the inner star already repeats
        if part.low == 0:
            return repeat(part.item, 0, None)
        return repeat(part.item, low, None)
    if part.nullable and isinstance(part, Words):
        return repeat(words(part.words - {""}), 0, high)
    return Repeat(part, low, high)


def derive(lang: Lang, char: str) -> Lang:
    """Every ``w`` with ``char + w`` in ``lang``."""
    if isinstance(lang, Words):
        return words(word[1:] for word in lang.words if word[:1] == char)
    if isinstance(lang, Chars):
        return EMPTY if chars.contains(lang.ranges, ord(char)) else NONE
    return _derive_small(lang, char) if lang.size <= _SMALL else _derive(lang, char)


def _derive(lang: Lang, char: str) -> Lang:
    if isinstance(lang, Cat):
        head, tail = lang.items[0], cat(*lang.items[1:])
        out = cat(derive(head, char), tail)
        return alt((out, derive(tail, char))) if head.nullable else out
    if isinstance(lang, Alt):
        return alt(derive(item, char) for item in lang.items)
    if isinstance(lang, And):
        return both(*(derive(item, char) for item in lang.items))
    if isinstance(lang, Not):
        return negate(derive(lang.item, char))
    assert isinstance(lang, Repeat)
    high = None if lang.high is None else lang.high - 1
    return cat(derive(lang.item, char), repeat(lang.item, max(0, lang.low - 1), high))


_derive_small = lru_cache(maxsize=32768)(_derive)


class Matcher:
    """Membership in one language; derivatives are remembered between words."""

    def __init__(self, lang: Lang) -> None:
        self._negative = isinstance(lang, Not)
        self._start = lang.item if isinstance(lang, Not) else lang
        self._next: dict[tuple[Lang, str], Lang] = {}
        self._parts = [Matcher(item) for item in self._start.items] if isinstance(self._start, And) else []

    def accepts(self, word: str) -> bool:
        found = all(part.accepts(word) for part in self._parts) if self._parts else self._walk(word)
        return found != self._negative

    def _walk(self, word: str) -> bool:
        state = self._start
        if isinstance(state, Words):
            return word in state.words
        if isinstance(state, Repeat) and isinstance(
            state.item, Chars
        ):  # counting states would take their number
            ranges = state.item.ranges
            bounded = state.low <= len(word) and (state.high is None or len(word) <= state.high)
            return bounded and all(chars.contains(ranges, ord(char)) for char in set(word))
        for char in word:
            key = (state, char)
            following = self._next.get(key)
            if following is None:
                following = self._next[key] = derive(state, char)
            if following is NONE:
                return False
            if following is ANY:
                return True
            state = following
        return state.nullable
