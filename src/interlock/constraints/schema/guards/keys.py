"""Keys that have come before: the tokens that would complete one again in an object whose keys nobody counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Ids, allowed_ids, is_allowed
from interlock.constraints.providers.base import Row
from interlock.constraints.schema.guards import tag_rivals
from interlock.constraints.schema.guards.notation import Json, NestedTags, Notation, Tags, key_text
from interlock.constraints.schema.guards.scan import KEYS, RepetitionError, State
from interlock.constraints.schema.guards.turn import InValue, LostError, Readings
from interlock.constraints.schema.guards.values import spelling, string_rest
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

_NO_IDS: Ids = np.zeros(0, dtype=np.int64)
_NOBODY: AbstractSet[int] = frozenset()
_IN_STRING = frozenset(("string", "key string"))
_IN_TAG = frozenset(("after", "tag"))


class KeyWatch(NamedTuple):
    """What one token may do to keys at a place. completers: tokens that complete one again, no duplicates. suspects: others that may
    do so, too. doubtful: states from which still others may."""

    completers: Ids = _NO_IDS
    suspects: AbstractSet[int] = frozenset()
    doubtful: tuple[State, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """No token completes a key again."""
        return not (self.completers.size or self.suspects or self.doubtful)

    def repeating(self, row: Row, vocabulary: GuardVocabulary, after: Callable[[int], object]) -> Ids:
        """The tokens of ``row`` that complete a key again. after: follows one token, and raises ``RepetitionError`` where that
        repeats something."""
        found = bitmask.those_allowed(row, self.completers)
        suspects = {one for one in self.suspects if is_allowed(row, one)}
        suspects.update(*(_doubtful(state, row, vocabulary) for state in self.doubtful))
        if not suspects:
            return found
        more = [one for one in suspects.difference(found.tolist()) if _repeats(one, after)]
        return np.concatenate((found, np.array(more, dtype=np.int64)))


NOTHING = KeyWatch()
"""Most often."""


def watch(readings: Readings, vocabulary: GuardVocabulary) -> KeyWatch:
    """At a place. Called for every token, so it is written for speed where there is one reading."""
    if len(readings) == 1:
        one = readings[0]
        return _watch(one.state, vocabulary) if isinstance(one, InValue) and one.state.frames else NOTHING
    found = [_watch(one.state, vocabulary) for one in readings if isinstance(one, InValue) and one.state.frames]
    if len(found) < 2:
        return found[0] if found else NOTHING
    return KeyWatch(
        np.unique(np.concatenate([one.completers for one in found])),
        frozenset[int]().union(*(one.suspects for one in found)),
        tuple(state for one in found for state in one.doubtful),
    )


def _watch(state: State, vocabulary: GuardVocabulary) -> KeyWatch:
    if state.mode == "end":
        return NOTHING
    if not isinstance(state.notation, Json):
        has_keys = any(frame.once and frame.seen.count for frame in state.frames)
        return KeyWatch(doubtful=(state,)) if has_keys else NOTHING
    suspects = _holders(state, vocabulary)
    frame = state.frames[-1]
    if state.mode in KEYS and frame.once and frame.seen.count:
        rests = _json_rests(state)
        if rests is None:
            return KeyWatch(suspects=suspects, doubtful=(state,))
        ends = vocabulary.ends_of_strings
        found = [ends[rest] for rest in rests if rest in ends]
        if found:
            return KeyWatch(found[0] if len(found) == 1 else np.concatenate(found), suspects)
    return KeyWatch(suspects=suspects) if suspects else NOTHING


def _json_rests(state: State) -> list[bytes] | None:
    """``_rests``; ``None`` where only the next bytes tell."""
    text = state.text
    if b"\\" in text:
        rests = list(_rests(state))
        return rests if state.mode != "key escape" and all(rests) else None
    keys = [_spelt(name) for part in state.frames[-1].seen.parts for name in part]
    return [key[len(text) :] for key in keys if key.startswith(text)]


def _holders(state: State, vocabulary: GuardVocabulary) -> AbstractSet[int]:
    """The tokens that hold the whole of a key that has come, or of one in another object."""
    names = vocabulary.whole_keys.names
    seen: set[str] = set()
    for frame in state.frames:
        if frame.once:
            for part in frame.seen.parts:
                if not part.isdisjoint(names):
                    seen.update(names.intersection(part))
    if not seen:
        return _NOBODY
    held = vocabulary.whole_keys.held(state)
    return frozenset(number for number, keys in held.items() if not keys.isdisjoint(seen))


def _rests(state: State) -> Iterator[bytes]:
    """What the open key lacks of those that have come, in its plainest spelling; empty where only the next bytes tell."""
    text, notation, is_outermost = state.text, state.notation, len(state.frames) == 1
    is_plain = b"\\" not in text
    for part in state.frames[-1].seen.parts:
        for name in part:
            key = _written(notation, name, is_outermost)
            if key.startswith(text):
                yield key[len(text) :]
            elif not is_plain and (rest := string_rest(text, key)) is not None:
                yield rest


def _doubtful(state: State, row: Row, vocabulary: GuardVocabulary) -> set[int]:
    if not isinstance(state.notation, Json):
        return _doubtful_arguments(state, row, vocabulary)
    return set(allowed_ids(row & vocabulary.quoting))


def _doubtful_arguments(state: State, row: Row, vocabulary: GuardVocabulary) -> set[int]:
    """In another notation."""
    notation, is_once = state.notation, state.frames[-1].once
    rests = set(_rests(state)) if is_once and state.mode == "key string" else set()
    if isinstance(notation, NestedTags) and is_once and state.mode in _IN_TAG:
        names = (_written(notation, name, False) for name in state.frames[-1].seen)
        texts = tag_rivals.texts(notation, state, names)
        rests.update(text[len(state.text) :] for text in texts if text.startswith(state.text))
    beyond = (one for rest in rests if rest for one in vocabulary.beyond(rest).tolist())
    found = {one for one in beyond if is_allowed(row, one)}
    if isinstance(notation, Tags) and len(state.frames) == 1:
        return found  # no token holds a tag with a name
    crossers = vocabulary.crossers(notation, in_string=state.mode in _IN_STRING)
    return found.union(allowed_ids(row & crossers))


def _repeats(token_id: int, after: Callable[[int], object]) -> bool:
    try:
        after(token_id)
    except RepetitionError:
        return True
    except LostError:
        return False
    return False


_spelt = lru_cache(4_096)(spelling)


@lru_cache(4_096)
def _written(notation: Notation, name: str, is_outermost: bool) -> bytes:
    return key_text(notation, name, is_outermost=is_outermost, plain=spelling(name))
