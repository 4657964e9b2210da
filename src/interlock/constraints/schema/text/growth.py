"""Whether a word that has begun can always become another one than those that there are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from interlock.constraints.schema.text.derive import representatives
from interlock.constraints.schema.text.lang import NONE, derive
from interlock.constraints.schema.text.nodes import Alt, And, Cat, Chars, Lang, Not, Repeat, Words

_MAX_STATES = 120


@lru_cache(maxsize=4_096)
def always_grows(lang: Lang) -> bool:
    """True only if each beginning of a word is the beginning of words without end."""
    match lang:
        case Words() | Chars():
            return False
        case Repeat(item=Chars() | Words(), high=high):
            return high is None
        case Repeat(high=None) if lang.plain:
            return True  # what has begun is brought to its end, and another one comes
        case Cat(items=items) if lang.plain:
            return _grows_at_its_end(items) or _grows_by_states(lang)
        case Alt(items=items) if lang.plain:
            return all(map(always_grows, items))
        case Not(item=Words()):
            return True
        case And(items=items):
            left = [item for item in items if not (isinstance(item, Not) and isinstance(item.item, Words))]
            if len(left) < 2:  # without a few words there are still as many
                return always_grows(left[0]) if left else True
    return _grows_by_states(lang)


def _grows_at_its_end(items: Sequence[Lang]) -> bool:
    """One of ``items`` always grows, and what comes behind it does so if it comes at all."""
    for item in reversed(items):
        if always_grows(item):
            return True
        if not _grows_once_begun(item):
            return False
    return False


def _grows_once_begun(lang: Lang) -> bool:
    """``always_grows`` for beginnings of a character or more."""
    match lang:
        case Words(words=words):
            return not any(words)
        case Alt(items=items) if lang.plain:
            return all(map(_grows_once_begun, items))
        case Repeat(item=item) if lang.plain:
            return _grows_once_begun(item) or always_grows(lang)
    return always_grows(lang)


def _grows_by_states(lang: Lang) -> bool:
    """There is a way from every state of its automaton that leads to a word into a cycle of such states."""
    following = _automaton(lang)
    if following is None:
        return False
    live = {state for state in following if state.nullable}
    while True:
        more = {state for state, after in following.items() if state not in live and live & after}
        if not more:
            break
        live |= more
    return live == _endless(live, following)


def _endless(live: set[Lang], following: dict[Lang, set[Lang]]) -> set[Lang]:
    """Those of ``live`` from which there is no last step."""
    left = set(live)
    while True:
        ends = {state for state in left if not following[state] & left}
        if not ends:
            return left
        left -= ends


def _automaton(lang: Lang) -> dict[Lang, set[Lang]] | None:
    """From each state to those one character further; ``None`` if there are too many."""
    following: dict[Lang, set[Lang]] = {}
    pending = [lang]
    while pending:
        state = pending.pop()
        if state in following:
            continue
        if len(following) >= _MAX_STATES:
            return None
        found = {derive(state, char) for char in representatives(state)}
        following[state] = {one for one in found if one is not NONE}
        pending += following[state]
    return following
