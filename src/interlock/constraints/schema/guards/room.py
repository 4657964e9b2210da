"""Where it is plain that something new can still come: told from the plan, without a look at the grammar."""

from __future__ import annotations

from bisect import bisect_left

from interlock.constraints.bitmask import allowed_ids
from interlock.constraints.providers.base import Row
from interlock.constraints.schema.guards.notation import JSON
from interlock.constraints.schema.guards.rivals import scope_index
from interlock.constraints.schema.guards.scan import Frame, Mode, State
from interlock.constraints.schema.guards.values import is_plain_string
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

_NOT_BEGUN: frozenset[Mode] = frozenset(("value", "after"))
_IN_KEY: frozenset[Mode] = frozenset(("key", "key string", "key escape"))


def has_way(state: State) -> bool:
    """The items that are open become new ones whatever they have been, and the next ones can too."""
    start = scope_index(state)
    if start is None or state.notation != JSON:
        return False
    frames = state.frames
    level = _level(state, start)
    return all(
        frame.is_array and (at < level or (at == len(frames) - 1 and is_fresh(state)))
        for at, frame in enumerate(frames[start:], start)
        if frame.checked
    )


def is_fresh(state: State) -> bool:
    """Between the items of the innermost array, or at the beginning of one, of which there are very many."""
    room = state.frames[-1].room
    if state.notation != JSON:
        return False
    return (room.fresh and state.mode in _NOT_BEGUN) or (room.strings and state.text == b'"')


def in_question(state: State, row: Row, vocabulary: GuardVocabulary) -> list[int] | None:
    """The tokens of ``row`` that need a look because of what they begin: they end what is open and begin something of
    which there may not be very many. ``None`` where that is not easily told."""
    start = scope_index(state)
    if start is None or state.notation != JSON:
        return None
    frames = state.frames
    watched = [at for at in range(start, len(frames)) if frames[at].checked]
    if not all(frames[at].room.fresh for at in watched):
        return None
    nearest = watched[-1]
    reopeners = vocabulary.reopeners(in_string=state.mode in ("string", "key string"))
    is_outermost = not any(frame.checked for frame in frames[:nearest])
    num_inside, room = len(frames) - 1 - nearest, frames[nearest].room
    candidates = row & reopeners.in_question(num_inside, room, is_outermost=is_outermost)
    if not candidates.any():
        return []
    return [
        token_id
        for token_id in allowed_ids(candidates)
        if not _passes(state, vocabulary.tokens[token_id], reopeners.passed(token_id))
    ]


def _passes(state: State, token: bytes, passed: tuple[bytes, ...]) -> bool:
    """In a string of an array of any such: the open one ends, ``passed`` come behind it, and nothing is repeated by these."""
    frame = state.frames[-1]
    if not passed or not frame.room.text or frame.reserved or state.mode != "string":
        return False
    ended = state.text + token[: token.index(b'"') + 1]
    return (
        b"\\" not in ended
        and len({ended, *passed}) > len(passed)
        and not any(map(frame.seen.__contains__, passed))
    )


def tells(frame: Frame, text: bytes) -> bool | None:
    """Whether the open item of an array of few strings may be ``text``, from its quote on, and what follows it, with some item
    left to come where one must. ``None`` where that is not easily told."""
    domain, seen = frame.room.domain, frame.seen
    if not domain or text[:1] != b'"' or b"\\" in text:
        return None
    end = text.find(b'"', 1) + 1
    if not end:
        at = bisect_left(domain, text)
        while at < len(domain) and domain[at].startswith(text) and domain[at] in seen:
            at += 1
        return at < len(domain) and domain[at].startswith(text)
    if text[:end] in seen:
        return False
    if text[end:] in (b",", b',"'):
        return seen.count + 1 < len(domain)
    return True if end == len(text) else None


def may_grow(state: State) -> bool:
    """Inside an item that is a string, and whatever it is so far, it may become a new one."""
    frame = state.frames[-1]
    return frame.checked and frame.room.text and state.mode == "string" and is_plain_string(state.text)


def has_way_around(state: State) -> bool:
    """The items around the innermost container become new ones, whatever they have been."""
    start = scope_index(state)
    if start is None or state.notation != JSON:
        return False
    level = _level(state, start, is_begun=True)
    outer = enumerate(state.frames[start:-1], start)
    return all(frame.is_array and at < level for at, frame in outer if frame.checked)


def keeps_way(state: State) -> bool:
    """``has_way``, behind whatever comes up to the end of the innermost container, in which nothing is watched."""
    return not state.frames[-1].checked and has_way_around(state)


def _level(state: State, start: int, *, is_begun: bool = False) -> int:
    """The innermost container with room for what is new, inside an item of the array at ``start``; 0 if there is none.
    is_begun: do not count on the value that is open, not even where it is not begun."""
    last = len(state.frames) - 1
    for at in range(last, start, -1):
        frame = state.frames[at]
        mode = state.mode if at == last else None
        has_room = _has_item if frame.is_array else _has_key
        if frame.kept and has_room(frame, mode, is_begun=is_begun):
            return at
    return 0


def _has_item(frame: Frame, mode: Mode | None, *, is_begun: bool) -> bool:
    """One more item may come to the array. mode: if it is the innermost container."""
    num_items = frame.index if mode == "value" and not is_begun else frame.index + 1
    return num_items < frame.room.items


def _has_key(frame: Frame, mode: Mode | None, *, is_begun: bool) -> bool:
    """A key may come to the object with many values, or has come, and its value is still open. mode: if that object is the
    innermost container."""
    room = frame.room
    if room.keys or not room.spare:
        return room.keys
    left = room.spare.difference(key for key, _ in frame.parts)
    if mode in _IN_KEY:
        return len(left) > is_begun  # one of them may be the key that is open
    if mode in ("colon", "value") and not is_begun:
        return bool(left)
    return bool(left.difference((frame.key,)))
