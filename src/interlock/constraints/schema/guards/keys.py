"""Keys that have come before: the tokens that would complete one again in an object whose keys nobody counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from interlock.constraints.bitmask import allowed_ids, is_allowed
from interlock.constraints.providers.base import Row
from interlock.constraints.schema.guards import tag_rivals
from interlock.constraints.schema.guards.notation import JSON, NestedTags, Notation, Tags, key_text
from interlock.constraints.schema.guards.scan import Frame, RepetitionError, State
from interlock.constraints.schema.guards.turn import InValue, LostError, Readings
from interlock.constraints.schema.guards.values import spelling, string_rest
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

_IN_KEY = frozenset(("key string", "key escape"))
_IN_STRING = frozenset(("string", "key string"))
_IN_TAG = frozenset(("after", "tag"))


class KeyWatch(NamedTuple):
    """What one token may do to keys at a place. completers: tokens that complete one again. doubtful: states from which others
    may do so, too."""

    completers: AbstractSet[int] = frozenset()
    doubtful: tuple[State, ...] = ()

    def repeating(self, row: Row, vocabulary: GuardVocabulary, after: Callable[[int], object]) -> list[int]:
        """The tokens of ``row`` that complete a key again. after: follows one token, and raises ``RepetitionError`` where that
        repeats something."""
        found = [one for one in self.completers if is_allowed(row, one)]
        for state in self.doubtful:
            tokens = _doubtful(state, row, vocabulary).difference(found)
            found += (one for one in tokens if _repeats(one, after))
        return found


_NOTHING = KeyWatch()


def watch(readings: Readings, vocabulary: GuardVocabulary) -> KeyWatch:
    """At a place."""
    states = [one.state for one in readings if isinstance(one, InValue) and one.state.frames]
    found = [one for state in states if (one := _watch(state, vocabulary)) is not _NOTHING]
    if len(found) < 2:
        return found[0] if found else _NOTHING
    completers = frozenset[int]().union(*(one.completers for one in found))
    return KeyWatch(completers, tuple(state for one in found for state in one.doubtful))


def _watch(state: State, vocabulary: GuardVocabulary) -> KeyWatch:
    frames = [frame for frame in state.frames if frame.once and frame.seen.count]
    if not frames or state.mode == "end":
        return _NOTHING
    if state.notation != JSON or _may_hold_key(frames, vocabulary):
        return KeyWatch(doubtful=(state,))
    if frames[-1] is not state.frames[-1] or state.mode not in _IN_KEY:
        return _NOTHING
    if state.mode == "key escape":
        return KeyWatch(doubtful=(state,))
    rests = list(_rests(state))
    if not rests:
        return _NOTHING
    if not all(rests):
        return KeyWatch(doubtful=(state,))
    ends = vocabulary.ends_of_strings
    found = frozenset(token_id for rest in rests for token_id in ends.get(rest, ()))
    return KeyWatch(found) if found else _NOTHING


def _may_hold_key(frames: Iterable[Frame], vocabulary: GuardVocabulary) -> bool:
    """A token holds the whole of a key of ``frames``. Such keys are a character of punctuation or none."""
    return any(not part.isdisjoint(vocabulary.whole_strings) for frame in frames for part in frame.seen.parts)


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
    if state.notation != JSON:
        return _doubtful_arguments(state, row, vocabulary)
    found = set(allowed_ids(row & vocabulary.holding_strings))
    if state.frames[-1].once and state.mode in _IN_KEY:
        found.update(allowed_ids(row & vocabulary.quoting))
    return found


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


@lru_cache(4_096)
def _written(notation: Notation, name: str, is_outermost: bool) -> bytes:
    return key_text(notation, name, is_outermost=is_outermost, plain=spelling(name))
