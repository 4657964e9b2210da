"""Which tokens of a mask would repeat something, or lead to where only repetitions are left."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from interlock.constraints import bitmask
from interlock.constraints.bitmask import is_allowed
from interlock.constraints.providers.base import MatcherError, Row
from interlock.constraints.schema.guards.foresight import (
    DEAD,
    RESPELT,
    ExhaustedError,
    Foresight,
    Probe,
    num_items,
)
from interlock.constraints.schema.guards.rivals import (
    echoes,
    is_near,
    place,
    respelling,
    scope,
    scope_index,
)
from interlock.constraints.schema.guards.scan import Memo, Mode, RepetitionError, State
from interlock.constraints.schema.guards.turn import LostError, Readings, guarded_states
from interlock.constraints.schema.guards.values import is_plain_string
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary, Ids

Place = tuple[tuple[Hashable, ...], ...]
"""By ``place``, one for each state that matters."""

Arrival = tuple[Place, int] | None
"""Where a token comes to in the next item, and how many items it ends before; ``None`` if it begins none."""

Arrivals = dict[Hashable, Arrival]
"""By the shape of a place and a token; ``_UNCLEAR`` where the arrival depends on more."""

_UNCLEAR: Arrival = (), 0


_IN_STRING: dict[Mode, Mode] = {
    "value": "string", "string": "string", "key": "key string", "key string": "key string"
}  # fmt: skip


_OUTSIDE: frozenset[Mode] = frozenset(
    ("after", "value", "tag", "leave")
)  # between items, for the array that is open


class Narrowing:
    """Takes tokens out of ``row``, the mask of the grammar at the place of ``matcher``, which is guarded. arrivals: what is
    known of the grammar already, and what is found out."""

    def __init__(self, matcher: Probe, row: Row, vocabulary: GuardVocabulary, arrivals: Arrivals) -> None:
        self._matcher = matcher
        self._row = row
        self._vocabulary = vocabulary
        self._arrivals = arrivals
        self._states = guarded_states(matcher.readings)
        first = scope(self._states[0])
        assert first is not None
        self._memo = first.memo or Memo()
        self._num_items = num_items(matcher.readings)
        self._shape = _shape(self._states[0]) if len(matcher.readings) == 1 else None
        self._is_forced = np.count_nonzero(row) == 1 and len(bitmask.allowed_ids(row)) == 1
        self._probe: Probe | None = None

    def run(self) -> int:
        """The number of tokens taken out."""
        near = [state for state in self._states if is_near(state)]
        texts = [list(echoes(state)) for state in near]
        alive = self._alive_by_row(near[0], texts[0]) if len(near) == 1 else set()
        suspects = {one for state, ways in zip(near, texts, strict=True) for one in self._suspects(state, ways)}
        vetoed = self._vetoed(suspects, alive)
        for token_id in vetoed:
            bitmask.clear(self._row, token_id)
        if self._probe is not None:
            self._probe.close()
        return len(vetoed)

    def _vetoed(self, suspects: set[int], alive: set[int]) -> list[int]:
        """alive: those from which there is a way on."""
        tokens = self._vocabulary.tokens
        vetoed: list[int] = []
        passed: set[bytes] = set()  # texts that a way on begins with
        for one in self._longest_first(suspects.union(self._crossers())):
            token = tokens[one]
            if token in passed:
                continue
            if one not in alive and self._is_vetoed(one, is_suspect=one in suspects):
                vetoed.append(one)
            else:
                passed.update(_beginnings(token))
        return vetoed

    def _alive_by_row(self, state: State, ways: list[bytes]) -> set[int]:
        """In a string, the row itself often tells of a token that something new can follow. ways: ``echoes``."""
        mode = _IN_STRING.get(state.mode)
        if mode is None:
            return set()
        alive: set[int] = set()
        passed: set[bytes] = set()
        first, _, _, *content = place(state)
        heads = {one for way in ways for one in self._vocabulary.beginnings(way)}
        for token_id in self._longest_first(one for one in heads if is_allowed(self._row, one)):
            token = self._vocabulary.tokens[token_id]
            text = state.text + token
            if token in passed or text[:1] != b'"' or b'"' in text[1:] or b"\\" in text:
                continue
            where = ((first, mode, text, *content),)
            until = self._until(where)
            if until < self._num_items:
                num_free = self._num_free(token, ways)
                until = self._num_items + (num_free if mode == "string" else min(1, num_free)) - 1
                if num_free:
                    self._memo.until[where] = until
            if until >= self._num_items and self._shape is not None:
                alive.add(token_id)
                passed.update(_beginnings(token))
        return alive

    def _num_free(self, token: bytes, ways: list[bytes]) -> int:
        """In a string: how many bytes behind ``token`` lead to something new, as far as the row tells."""
        size = len(token)
        ids, following = self._vocabulary.following(token)
        taken = {way[size] for way in ways if len(way) > size and way.startswith(token)}
        return len(set(following[self._bits(ids)].tolist()) - taken - RESPELT)

    def _longest_first(self, token_ids: Iterable[int]) -> list[int]:
        tokens = self._vocabulary.tokens
        return sorted(token_ids, key=lambda one: -len(tokens[one]))

    def _suspects(self, state: State, ways: list[bytes]) -> Iterator[int]:
        """The allowed tokens that go on as an earlier item does, or may do so in another spelling. ways: ``echoes``."""
        row, vocabulary = self._row, self._vocabulary
        for way in ways:
            yield from (one for one in vocabulary.beginnings(way) if is_allowed(row, one))
            yield from self._allowed(vocabulary.beyond(way))
        manner = respelling(state)
        if manner is not None:
            yield from bitmask.allowed_ids(row & vocabulary.respelt(manner, state.notation))

    def _allowed(self, ids: Ids) -> list[int]:
        found: list[int] = ids[self._bits(ids)].tolist()
        return found

    def _bits(self, ids: Ids) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = (self._row[ids >> 5] >> (ids & 31)) & 1 == 1
        return allowed

    def _crossers(self) -> set[int]:
        """The allowed tokens that may end an item and begin the next one."""
        in_string = all(state.mode in ("string", "key string") for state in self._states)
        notations = {state.notation for state in self._states}
        rows = [self._vocabulary.crossers(notation, in_string=in_string) for notation in notations]
        return {one for row in rows for one in bitmask.allowed_ids(self._row & row)}

    def _is_vetoed(self, token_id: int, *, is_suspect: bool) -> bool:
        """is_suspect: it may repeat the item that is open here."""
        arrival = self._arrival(token_id)
        if arrival is None:
            if not is_suspect:
                return False
        elif not (is_suspect and arrival[1]) and (self._is_known(*arrival) or self._is_new(arrival[0])):
            return False
        try:
            following = self._matcher.after(token_id)
        except (RepetitionError, LostError):
            return True
        near = [state for state in guarded_states(following) if is_near(state)]
        return (
            bool(near) and not self._is_forced and self._is_dead(token_id, tuple(map(place, near)), following)
        )

    def _is_known(self, where: Hashable, num_ended: int) -> bool:
        """There is a way on from there."""
        return self._until(where) >= self._num_items + num_ended

    def _is_new(self, where: Place) -> bool:
        """A string is begun there as no earlier item begins, nor the string that is open here."""
        if len(where) != 1 or len(where[0]) != 3 or len(self._states) != 1:
            return False
        _, mode, text = where[0]
        state, frame = self._states[0], scope(self._states[0])
        if mode != "string" or state.mode != "string" or frame is not state.frames[-1]:
            return False
        if not (frame.is_array and isinstance(text, bytes) and is_plain_string(text)):
            return False
        is_like_open = state.text.startswith(text) or text.startswith(state.text)
        return not is_like_open and not any(frame.seen.beginning_with(text))

    def _until(self, where: Hashable) -> int:
        return self._memo.until.get(where, DEAD)

    def _is_dead(self, token_id: int, where: Hashable, following: Readings) -> bool:
        """Behind the token everything repeats something."""
        num_ended = num_items(following) - self._num_items
        if self._memo.until.get(where) == DEAD:
            return True
        if self._is_known(where, num_ended):
            return False
        probe = self._probe = self._probe or self._matcher.clone()
        try:
            probe.advance(token_id)
            memo = Memo() if num_ended else self._memo
            found = Foresight(probe, self._vocabulary, memo).until()
            probe.rollback(1)
        except (ExhaustedError, MatcherError):
            self._probe = None  # it may be anywhere; the token counts as alive
            return False
        if num_ended and found > self._num_items + num_ended:
            self._memo.until[where] = found - num_ended  # whatever the items are that end here
        return found == DEAD

    def _arrival(self, token_id: int) -> Arrival:
        if self._shape is None:
            return _UNCLEAR
        key = (self._shape, token_id)
        if key not in self._arrivals:
            try:
                after = guarded_states(self._matcher.after(token_id))
            except (RepetitionError, LostError):
                return _UNCLEAR  # here; elsewhere it may come through
            self._arrivals[key] = _arrived(self._states[0], after)
        return self._arrivals[key]


def _beginnings(text: bytes) -> Iterator[bytes]:
    return (text[:size] for size in range(1, len(text) + 1))


def _arrived(before: State, after: list[State]) -> Arrival:
    at = scope_index(before)
    assert at is not None
    old = before.frames
    if not after:
        return None
    new = after[0].frames
    if len(after) > 1 or len(new) <= at:
        return _UNCLEAR
    ended = [new[depth].seen.count - one.seen.count for depth, one in enumerate(old[: len(new)])]
    if any(ended[:at] + ended[at + 1 :]) or ended[at] > 1:
        return _UNCLEAR
    is_inside = len(new) > at + 1 or after[0].mode not in _OUTSIDE
    begins = ended[at] or (len(old) == at + 1 and before.mode in _OUTSIDE)
    return ((place(after[0]),), ended[at]) if is_inside and begins else None


def _shape(state: State) -> Hashable:
    """What decides where a token leads, as far as items begin and end."""
    at = scope_index(state)
    frames = state.frames[at:]
    return (state.mode, frames[0].place, *((one.is_array, one.checked, one.index == 0) for one in frames))
