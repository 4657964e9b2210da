"""Dead ends that nobody has foreseen: where the way to them began, and what to forbid there.

Behind a dead end everything repeats an item. The latest of the items that are in the way is written anew: values that are
needed now are left to this place by all items in front of it (conflict-directed backjumping, with what was learned kept). If it is the item
still open, another way is taken inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from interlock.constraints.bitmask import allowed_ids, is_allowed
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.schema.guards.foresight import ExhaustedError, Foresight, Probe, num_items
from interlock.constraints.schema.guards.memo import Memo
from interlock.constraints.schema.guards.rivals import is_near, place, scope
from interlock.constraints.schema.guards.scan import (
    Ban,
    Frame,
    Item,
    Path,
    RepetitionError,
    State,
    kept_back,
    path,
)
from interlock.constraints.schema.guards.turn import InValue, LostError, Readings, guarded_states
from interlock.constraints.schema.guards.values import Canonical
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

BEHIND_ITEM = frozenset(("after", "tag", "leave"))
"""Modes behind an item, where its array is what is open."""
_NOT_BEGUN = BEHIND_ITEM | {"value"}


class Hold(NamedTuple):
    """Tokens from number ``since`` on may be taken back. num_items: until the next one is complete; ``None``: as long as an
    array is open in which items may run out."""

    since: int
    num_items: int | None


class Culprit(NamedTuple):
    """What to write anew. at: the number of tokens in front of it. ban: what to forbid from there; ``None``: only the way
    just taken."""

    at: int
    ban: Ban | None


def hold_after(before: Hold | None, at: int, old: Readings, new: Readings) -> Hold | None:
    """What is held behind the token number ``at``, which led from ``old`` to ``new``."""
    states = guarded_states(new)
    if not states:
        return None
    if any(frame.is_inexact for state in states for frame in state.frames):
        return Hold(at if before is None else before.since, None)
    count = num_items(new)
    if before is not None and before.num_items == count:
        return before
    memo = _memo(old)
    if memo is not None and memo.doubts and memo.doubts.get(_near_place(states)) == count:
        return Hold(at, count)
    return None


def forbid(readings: Readings) -> None:
    """Remember that there is no way on from here."""
    memo = _memo(readings)
    if memo is not None:
        memo.until[_near_place(guarded_states(readings))] = -1


def _memo(readings: Readings) -> Memo | None:
    states = guarded_states(readings)
    frame = scope(states[0]) if states else None
    return None if frame is None else frame.memo


def _near_place(states: Iterable[State]) -> tuple[object, ...]:
    return tuple(place(state) for state in states if is_near(state))


def conflicts(probe: Probe, vocabulary: GuardVocabulary) -> list[RepetitionError]:
    """What stands in the way of going on with ``probe``, which is at a dead end; it may be left anywhere."""
    row = np.zeros(vocabulary.num_words, dtype=np.int32)
    found: list[RepetitionError] = []
    try:
        probe.inner.fill(row)
        ways = [one for one in vocabulary.step_ids.tolist() if is_allowed(row, one)] or allowed_ids(row)
        for token_id in ways:
            try:
                probe.advance(token_id)
            except RepetitionError as error:
                found.append(error)
            except LostError:
                continue
            else:
                foresight = Foresight(probe, vocabulary, Memo())
                try:
                    foresight.until()
                finally:
                    found += foresight.conflicts
                probe.rollback(1)
    except (ExhaustedError, MatcherError):
        pass  # what was found until then has to do
    return found


class _Suspect(NamedTuple):
    """What has led to a dead end. at: the number of tokens in front of it. item: ``None`` where it is the way just taken. until:
    the index in its array that needs its value."""

    at: int
    item: Item | None = None
    until: int = 0


class History:
    """How a document came to where it is. readings: one for each token, the start first; the last one is a dead end."""

    def __init__(self, readings: Sequence[Readings]) -> None:
        self._readings = readings
        self._states = [next(iter(guarded_states(one)), None) for one in readings]
        self._last = self._states[-1]

    def culprit(self, met: Iterable[RepetitionError], floor: int) -> Culprit | None:
        """The latest of what led to a dead end at which ``met`` were met, not before token ``floor``."""
        suspects = [one for error in met for one in self._suspects(error)]
        within_reach = [one for one in suspects if one.at >= floor and self._can_write(one)]
        if not within_reach:
            return None
        latest = max(within_reach, key=lambda one: (one.at, one.item is None, one.until))
        if latest.item is None:
            return Culprit(latest.at, None)
        place, value = (latest.item.path, latest.item.index), latest.item.value
        others = {one.item for one in suspects if one.item and (one.item.path, one.item.index) != place}
        reasons = tuple(sorted(others, key=repr))
        return Culprit(latest.at, Ban(latest.item.path, value, latest.until, reasons))

    def _can_write(self, suspect: _Suspect) -> bool:
        """The value has begun, so that there is a place to remember a ban."""
        return suspect.item is None or any(isinstance(one, InValue) for one in self._readings[suspect.at])

    def _suspects(self, error: RepetitionError) -> Iterator[_Suspect]:
        where, value, index = path(error.frames[:-1]), error.item, error.frames[-1].index
        last, frame = self._last, self._frame(len(self._states) - 1, where)
        if last is None or frame is None or not frame.is_array:
            return
        has_begun = len(last.frames) > len(where) + 1 or last.mode not in _NOT_BEGUN
        if has_begun and index == frame.seen.count:
            yield _Suspect(len(self._states) - 2)
            return
        if value in frame.seen:
            items = [Item(where, self._index_of(where, value), value)]
        elif value in error.frames[-1].seen:  # it is the open one
            items = [Item(where, frame.seen.count, value)]
        else:
            bans = [one for one in last.bans if (one.path, one.value) == (where, value)]
            items = [reason for ban in bans for reason in ban.reasons]
            if not bans:  # later positions need it, for what the items so far have taken
                items = self._item_before(where, index)
        for item in items:
            at, open_array = (
                self._start_of(item.path, item.index),
                self._frame(len(self._states) - 1, item.path),
            )
            if at is not None and open_array is not None:
                yield _Suspect(at, item, index if item.path == where else open_array.seen.count)

    def _frame(self, at: int, where: Path) -> Frame | None:
        """The array at ``where`` after ``at`` tokens, if it is open and its items must differ."""
        state = self._states[at]
        depth = len(where)
        if state is None or len(state.frames) <= depth or path(state.frames[:depth]) != where:
            return None
        return state.frames[depth] if state.frames[depth].checked else None

    def _index_of(self, where: Path, value: Canonical) -> int:
        """Of the item that is ``value``."""
        for at in range(len(self._states) - 2, -1, -1):
            frame = self._frame(at, where)
            if frame is None:
                return 0
            if value not in frame.seen:
                return frame.seen.count
        return 0

    def _item_before(self, where: Path, index: int) -> list[Item]:
        """The item in front of the one at ``index``; of several that came with one token, any."""
        earlier: set[Canonical] = set()
        for at in range(len(self._states)):
            frame = self._frame(at, where)
            if frame is not None and frame.seen.count >= index:
                return [Item(where, index - 1, one) for one in frame.seen if one not in earlier][:1]
            earlier = set(() if frame is None else frame.seen)
        return []

    def _start_of(self, where: Path, index: int) -> int | None:
        """The number of tokens in front of the item at ``index``."""
        depth = len(where)
        for at in range(len(self._states) - 1, -1, -1):
            state, frame = self._states[at], self._frame(at, where)
            if frame is None:
                return at
            assert state is not None
            if frame.seen.count < index or (
                frame.seen.count == index and len(state.frames) == depth + 1 and state.mode in _NOT_BEGUN
            ):
                return at
        return None


def with_ban(readings: Readings, ban: Ban, learned: Sequence[Ban]) -> Readings:
    """``readings`` at the beginning of an item with ``ban`` for it. learned: what was known further on, which is kept where
    it holds here."""
    return tuple(_with_ban(one, ban, learned) if isinstance(one, InValue) else one for one in readings)


def _with_ban(reading: InValue, ban: Ban, learned: Sequence[Ban]) -> InValue:
    state = reading.state
    index = _open_index(state, ban.path)
    kept = [old for old in learned if old.path == ban.path and old.since <= index]
    bans = tuple(dict.fromkeys((*state.bans, *kept, ban)))
    frames = tuple(_banned(state.frames, depth, bans) for depth in range(len(state.frames)))
    return replace(reading, state=replace(state, frames=frames, bans=bans))


def _open_index(state: State, where: Path) -> int:
    depth = len(where)
    is_open = len(state.frames) > depth and path(state.frames[:depth]) == where
    return state.frames[depth].seen.count if is_open else 0


def _banned(frames: Sequence[Frame], depth: int, bans: Sequence[Ban]) -> Frame:
    frame = frames[depth]
    if not (frame.checked and frame.is_array):
        return frame
    return replace(frame, reserved=kept_back(frame, frame.index, path(frames[:depth]), bans), memo=Memo())
