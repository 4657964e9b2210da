r"""ECMA 262 patterns as languages: every string in which the pattern finds a match.

Each piece of syntax is translated in front of what follows it (its *continuation*). A continuation is a
language for each kind of place to its left: the start of the text, after a word character, after another
character. So ``^``, ``$``, ``\b`` and look-ahead become intersections of ordinary languages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from interlock.constraints.schema.text import chars
from interlock.constraints.schema.text.ecma_syntax import (
    Assertion,
    Choice,
    Class,
    Look,
    Loop,
    PatternError,
    Seq,
    Syntax,
    parse,
)
from interlock.constraints.schema.text.lang import (
    ANY,
    EMPTY,
    NONE,
    alt,
    both,
    cat,
    either,
    negate,
    one_of,
    repeat,
)
from interlock.constraints.schema.text.nodes import Lang

START, WORD, OTHER = 0, 1, 2  # kinds of places
Rest = tuple[Lang, Lang, Lang]  # a continuation, indexed by the kinds

MAX_SIZE = 20_000
_MAX_UNROLL = 64
_ENDS_IN_WORD = cat(ANY, one_of(chars.WORD))
_ENDS_IN_OTHER = cat(ANY, one_of(chars.NOT_WORD))
_WORD_NEXT = cat(one_of(chars.WORD), ANY)
_OTHER_NEXT = either(EMPTY, cat(one_of(chars.NOT_WORD), ANY))


@lru_cache(maxsize=512)
def search(pattern: str) -> Lang:
    """The strings that ``pattern`` matches somewhere. Raises ``PatternError``."""
    anything = Loop(Class(chars.ALL), 0, None)
    syntax = Seq((anything, parse(pattern), anything))
    return _translate(syntax, (EMPTY, EMPTY, EMPTY))[START]


def _translate(syntax: Syntax, rest: Rest) -> Rest:
    """``syntax`` followed by ``rest``, for each kind of place."""
    if not _asserts(syntax) and rest[0] is rest[1] is rest[2]:
        lang = cat(_plain(syntax), rest[0])
        return _checked((lang, lang, lang))
    match syntax:
        case Seq(items=items):
            for item in reversed(items):
                rest = _translate(item, rest)
            return rest
        case Choice(items=items):
            found = [_translate(item, rest) for item in items]
            return _checked(_uniform(tuple(alt(lang[place] for lang in found) for place in range(3))))
        case Class(ranges=ranges):
            lang = either(
                cat(one_of(chars.intersect(ranges, chars.WORD)), rest[WORD]),
                cat(one_of(chars.intersect(ranges, chars.NOT_WORD)), rest[OTHER]),
            )
            if rest[WORD] == rest[OTHER]:
                lang = cat(one_of(ranges), rest[WORD])
            return (lang, lang, lang)
        case Assertion(kind=kind):
            return _assertion(kind, rest)
        case Look(item=item, negative=negative):
            ahead = _translate(item, (ANY, ANY, ANY))
            return _each(lambda p: both(negate(ahead[p]) if negative else ahead[p], rest[p]))
        case Loop():
            return _checked(_loop(syntax, rest))


def _assertion(kind: str, rest: Rest) -> Rest:
    if kind == "start":
        return (rest[START], NONE, NONE)
    if kind == "end":
        return _each(lambda p: both(EMPTY, rest[p]))
    same = kind == "inside"
    return _each(lambda p: both(_WORD_NEXT if (p == WORD) == same else _OTHER_NEXT, rest[p]))


def _loop(loop: Loop, rest: Rest) -> Rest:
    if not _asserts(loop.item):
        return _plain_loop(_plain(loop.item), loop, rest)
    if loop.high is not None:
        return _unroll(loop.item, loop.low, loop.high, rest)
    if loop.low > _MAX_UNROLL:
        raise PatternError("a repeat with assertions inside is too long")
    rest = _star(loop.item, rest)
    for _ in range(loop.low):
        rest = _translate(loop.item, rest)
    return rest


def _plain_loop(item: Lang, loop: Loop, rest: Rest) -> Rest:
    """The last character read decides which continuation applies."""
    body = repeat(item, loop.low, loop.high)
    if rest[WORD] == rest[OTHER]:
        if rest[START] == rest[WORD]:
            lang = cat(body, rest[WORD])
            return (lang, lang, lang)
        after = cat(body, rest[WORD])
        if not body.nullable:
            return (after, after, after)
        return (either(cat(_nonempty(item, loop), rest[WORD]), rest[START]), after, after)
    words, others = cat(both(body, _ENDS_IN_WORD), rest[WORD]), cat(both(body, _ENDS_IN_OTHER), rest[OTHER])
    return _each(lambda p: alt((words, others, rest[p] if body.nullable else NONE)))


def _nonempty(item: Lang, loop: Loop) -> Lang:
    if not item.nullable:
        return repeat(item, max(1, loop.low), loop.high)
    return both(repeat(item, loop.low, loop.high), repeat(one_of(chars.ALL), 1, None))


def _unroll(item: Syntax, low: int, high: int, rest: Rest) -> Rest:
    if high > _MAX_UNROLL:
        raise PatternError("a repeat with assertions inside is too long")
    out = rest
    for _ in range(high - low):
        once = _translate(item, out)
        out = _checked(_uniform(tuple(either(once[place], rest[place]) for place in range(3))))
    for _ in range(low):
        out = _translate(item, out)
    return out


def _star(item: Syntax, rest: Rest) -> Rest:
    """``item*`` with ``^`` or ``$`` inside: ``^`` can hold in the first round only, ``$`` in the last."""
    tempered = _tempered(item, rest)
    if tempered is not None:
        return tempered
    if _has_other(item) or rest[WORD] != rest[OTHER]:
        raise PatternError("'\\b' or look-ahead inside an unbounded repeat is not supported")
    middle = _translate(_without_edges(item), (EMPTY, EMPTY, EMPTY))[WORD]
    at_end = EMPTY if rest[WORD].nullable else NONE
    last = _translate(item, (at_end, at_end, at_end))
    later = cat(repeat(middle, 0, None), either(rest[WORD], last[WORD]))
    first = _translate(item, (rest[START], later, later))
    return (either(rest[START], first[START]), later, later)


def _tempered(item: Syntax, rest: Rest) -> Rest | None:
    """``((?!A)(?!B)c)*`` up to the end of the text: no suffix begins with A or B."""
    if rest[WORD] != EMPTY or rest[OTHER] != EMPTY or rest[START] != EMPTY:
        return None
    match item:
        case Seq(items=(Look(), *_, Class(ranges=ranges)) as items):
            looks = [look for look in items[:-1] if isinstance(look, Look) and look.negative]
            if len(looks) + 1 < len(items) or any(_asserts(look.item) for look in looks):
                return None
            forbidden = alt(_plain(look.item) for look in looks)
            if forbidden.nullable:
                return None
            lang = both(repeat(one_of(ranges), 0, None), negate(cat(ANY, forbidden, ANY)))
            return (lang, lang, lang)
    return None


def _plain(syntax: Syntax) -> Lang:
    """Syntax without assertions."""
    match syntax:
        case Class(ranges=ranges):
            return one_of(ranges)
        case Seq(items=items):
            return cat(*map(_plain, items))
        case Choice(items=items):
            return alt(map(_plain, items))
        case Loop(item=item, low=low, high=high):
            return repeat(_plain(item), low, high)
        case _:
            raise AssertionError(syntax)


def _asserts(syntax: Syntax) -> bool:
    match syntax:
        case Assertion() | Look():
            return True
        case Seq(items=items) | Choice(items=items):
            return any(map(_asserts, items))
        case Loop(item=item):
            return _asserts(item)
        case _:
            return False


def _has_other(syntax: Syntax) -> bool:
    """Assertions that are neither ``^`` nor ``$``."""
    match syntax:
        case Look():
            return True
        case Assertion(kind=kind):
            return kind in ("boundary", "inside")
        case Seq(items=items) | Choice(items=items):
            return any(map(_has_other, items))
        case Loop(item=item):
            return _has_other(item)
        case _:
            return False


def _without_edges(syntax: Syntax) -> Syntax:
    """``syntax`` in which ``^`` and ``$`` never hold."""
    match syntax:
        case Assertion():
            return Class(chars.NOTHING)
        case Seq(items=items):
            return Seq(tuple(map(_without_edges, items)))
        case Choice(items=items):
            return Choice(tuple(map(_without_edges, items)))
        case Loop(item=item, low=low, high=high):
            return Loop(_without_edges(item), low, high)
        case _:
            return syntax


def _each(function: Callable[[int], Lang]) -> Rest:
    langs = [function(place) for place in range(3)]
    return _uniform((langs[0], langs[1], langs[2]))


def _uniform(rest: tuple[Lang, ...]) -> Rest:
    first, second, third = rest
    if second == third:
        third = second
        if first == second:
            first = second
    return (first, second, third)


def _checked(rest: Rest) -> Rest:
    if max(lang.size for lang in rest) > MAX_SIZE:
        raise PatternError(f"the pattern is too complex: more than {MAX_SIZE} parts when written out")
    return rest
