"""Which tokens of a mask would repeat something, or lead to where only repetitions are left."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.bitmask import is_allowed
from interlock.constraints.providers.base import MatcherError, Row
from interlock.constraints.schema.guards.arrivals import (
    UNKNOWN,
    Arrival,
    Arrivals,
    Place,
    arrived,
    shape,
)
from interlock.constraints.schema.guards.candidates import Candidates
from interlock.constraints.schema.guards.foresight import (
    DEAD,
    RESPELT,
    ExhaustedError,
    Foresight,
    Probe,
    near_bytes,
    num_items,
    num_longer,
)
from interlock.constraints.schema.guards.memo import Memo
from interlock.constraints.schema.guards.notation import JSON
from interlock.constraints.schema.guards.rivals import (
    echoes,
    is_near,
    place,
    respelling,
    scope,
    scope_index,
)
from interlock.constraints.schema.guards.room import has_way, has_way_around, keeps_way, may_grow, tells
from interlock.constraints.schema.guards.scan import Mode, RepetitionError, State
from interlock.constraints.schema.guards.turn import LostError, Readings, guarded_states
from interlock.constraints.schema.guards.values import is_plain_string
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

_PROBED = b"a0A -./e1E_i2In3No4Or5Rs6St7T89xyz"
_MAX_PROBED = 6
_MAX_REFUSED = 8  # bytes tried where none is possible
_STARTS = tuple(b'"' + bytes((byte,)) for byte in _PROBED)


_IN_STRING: dict[Mode, Mode] = {
    "value": "string", "string": "string", "key": "key string", "key string": "key string"
}  # fmt: skip


class Narrowing:
    """Takes tokens out of ``row``, the mask of the grammar at the place of ``matcher``, which is guarded. arrivals: what is
    known of the grammar already, and what is found out."""

    def __init__(self, matcher: Probe, row: Row, vocabulary: GuardVocabulary, arrivals: Arrivals) -> None:
        self._matcher = matcher
        self._row = row
        self._vocabulary = vocabulary
        self._states = guarded_states(matcher.readings)
        self._tokens = Candidates(row, vocabulary, self._states)
        first = scope(self._states[0])
        assert first is not None
        self._memo = first.memo or Memo()
        self._num_items = num_items(matcher.readings)
        is_alone = len(matcher.readings) == 1
        self._arrivals = arrivals.setdefault(shape(self._states[0]), {}) if is_alone else None
        self._is_plain = is_alone and _is_item_by_text(self._states[0])
        self._is_forced = np.count_nonzero(row) == 1 and len(bitmask.allowed_ids(row)) == 1
        self._keeps_way = len(self._states) == 1 and keeps_way(self._states[0])
        self._has_way_around = is_alone and has_way_around(self._states[0])
        self._probe: Probe | None = None
        self._rests: list[bytes] = []  # of the strings that are earlier items, in order
        self._doubted: set[int] = set()  # tokens
        self._doubtful: set[bytes] = set()  # what they begin with

    def run(self, tokens: list[int] | None = None) -> int:
        """The number of tokens taken out. tokens: those that need a look because of what follows the open item, if that is
        known."""
        suspects, alive = self._candidates()
        if tokens is None:
            vetoed = self._vetoed(suspects, alive, self._crossers())
        else:
            vetoed = self._vetoed(suspects.union(tokens), alive, set())
        for token_id in vetoed:
            bitmask.clear(self._row, token_id)
        if self._probe is not None:
            self._probe.close()
        return len(vetoed)

    def _candidates(self) -> tuple[set[int], set[int]]:
        """The tokens that may repeat what is open here, and those of them from which there is a way on."""
        near = [state for state in self._states if is_near(state)]
        if self._keeps_way:
            return (self._tokens.closers() if near else set()), set()
        if len(near) == 1 and may_grow(near[0]) and respelling(near[0]) is None:
            return set(self._tokens.completers(near[0])), set()
        texts = [list(echoes(state)) for state in near]
        if self._is_plain and near:
            self._rests = sorted(texts[0])
        found = (self._tokens.suspects(state, ways) for state, ways in zip(near, texts, strict=True))
        by_row = len(near) == 1 and not near[0].frames[-1].room.domain
        return set().union(*found), (self._alive_by_row(near[0], texts[0]) if by_row else set())

    def _vetoed(self, suspects: set[int], alive: set[int], crossers: set[int]) -> list[int]:
        """alive: those from which there is a way on. crossers: tokens that may begin another item."""
        tokens = self._vocabulary.tokens
        vetoed: list[int] = []
        passed: set[bytes] = set()  # texts that a way on begins with
        for one in self._longest_first(suspects | crossers):
            token = tokens[one]
            if token in passed:
                continue
            if one not in alive and self._is_vetoed(one, is_suspect=one in suspects):
                vetoed.append(one)
            elif one not in self._doubted:
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
            until = self._num_items if self._has_way(where) else self._memo.until.get(where)
            if until == DEAD:
                continue
            if until is None or until < self._num_items:
                free = self._free(token, ways)
                num_free = len(free)
                until = self._num_items + (num_free if mode == "string" else min(1, num_free)) - 1
                if num_free:
                    self._memo.until[where] = until
                if num_free and self._is_plain:
                    self._memo.ways[where] = text + bytes((min(free),))
            if until >= self._num_items and self._arrivals is not None:
                alive.add(token_id)
                passed.update(_beginnings(token))
        return alive

    def _has_way(self, where: Place) -> bool:
        """where: inside a string that may become a new one."""
        way = self._memo.ways.get(where) if self._is_plain else None
        if way is None:
            return False
        rest = way[len(self._states[0].text) :]
        at = bisect_left(self._rests, rest)
        return at == len(self._rests) or not self._rests[at].startswith(rest)

    def _free(self, token: bytes, ways: list[bytes]) -> set[int]:
        """In a string: the bytes behind ``token`` that lead to something new, as far as the row tells."""
        size = len(token)
        taken = {way[size] for way in ways if len(way) > size and way.startswith(token)}
        return self._tokens.following(token) - taken - RESPELT

    def _longest_first(self, token_ids: Iterable[int]) -> list[int]:
        tokens = self._vocabulary.tokens
        return sorted(token_ids, key=lambda one: -len(tokens[one]))

    def _crossers(self) -> set[int]:
        """The allowed tokens that may end an item and begin the next one."""
        found = self._tokens.crossers()
        if self._keeps_way:
            found &= self._tokens.closers()
        if self._arrivals is None:
            return found
        keys = {one: self._way_out(one) for one in found}
        passed = {key for key in set(keys.values()) if self._passes(self._arrivals.get(key, UNKNOWN))}
        return {one for one in found if keys[one] not in passed}

    def _passes(self, arrival: Arrival | None) -> bool:
        """It is known that from there is a way on, whatever item ends before."""
        return arrival is None or self._leads_on(arrival)

    def _leads_on(self, arrival: Arrival) -> bool:
        """There is a way on from there."""
        is_plain = arrival.way == "plain" or (arrival.way == "around" and self._has_way_around)
        return is_plain or self._is_known(arrival.where, arrival.num_ended)

    def _is_vetoed(self, token_id: int, *, is_suspect: bool) -> bool:
        """is_suspect: it may repeat the item that is open here."""
        is_told = self._is_plain and (is_suspect or bool(self._states[0].frames[-1].room.domain))
        told = self._told_by_text(token_id) if is_told else None
        if told is not None:
            return told
        arrival = self._arrival(token_id)
        if arrival is None:
            if not is_suspect:
                return False
        elif not (is_suspect and arrival.num_ended) and (
            self._leads_on(arrival) or self._is_new(token_id, arrival)
        ):
            return False
        try:
            following = self._matcher.after(token_id)
        except (RepetitionError, LostError):
            return True
        near = [state for state in guarded_states(following) if is_near(state)]
        if not near or all(map(has_way, near)):
            return False
        if self._is_forced:  # to be taken before long, whether or not there is a way on
            return self._until(tuple(map(place, near)), missing=0) == DEAD
        return self._is_dead(token_id, near, following)

    def _is_known(self, where: Hashable, num_ended: int) -> bool:
        """There is a way on from there."""
        return self._until(where) >= self._num_items + num_ended

    def _told_by_text(self, token_id: int) -> bool | None:
        """Of a string that is an item: whether the token completes an earlier one, or leads to where nothing else is left."""
        state = self._states[0]
        text = state.text + self._vocabulary.tokens[token_id]
        told = tells(state.frames[-1], text)
        if told is not None:
            return not told
        if text[:1] != b'"' or b"\\" in text:
            return None
        end = text.find(b'"', 1)
        if end > 0:
            return True if text[: end + 1] in state.frames[-1].seen else None
        where = ((state.frames[-1].place, "string", text),)
        if self._has_way(where):
            return False
        until = self._memo.until.get(where)
        if until == DEAD:
            return True
        return False if until is not None and until >= self._num_items else None

    def _is_new(self, token_id: int, arrival: Arrival) -> bool:
        """A string of the open array begins, or may go on, as no earlier one nor the open one."""
        begun = arrival.begun
        state = self._states[0]
        frame = state.frames[-1]
        if begun is None or state.mode != "string" or state.text[:1] != b'"' or len(self._states) > 1:
            return False
        if frame.rivals or frame.slots or state.bans:
            return False
        tokens, ids = self._vocabulary.tokens, self._vocabulary.ids
        if begun not in (b"", b'"'):
            is_like_open = state.text.startswith(begun) or begun.startswith(state.text)
            return is_plain_string(begun) and not is_like_open and not any(frame.seen.beginning_with(begun))
        path = [token_id] if begun else [token_id, ids.get(b'"', token_id)]
        open_text = state.text + tokens[token_id]
        num_free = 0
        for start in _STARTS:
            step = ids.get(start[1:])
            if step is None or open_text.startswith(start) or any(frame.seen.beginning_with(start)):
                continue
            num_free += self._matcher.inner.validate([*path, step]) == len(path) + 1
            if not num_free or not arrival.where or num_free >= _MAX_PROBED:
                break
        if num_free > 1:
            self._memo.until[arrival.where] = (
                self._num_items + num_free - 1
            )  # whatever the item is that ends here
        return num_free > 0

    def _until(self, where: Hashable, missing: int = DEAD) -> int:
        return self._memo.until.get(where, missing)

    def _is_dead(self, token_id: int, near: list[State], following: Readings) -> bool:
        """Behind the token everything repeats something. near: where it leads."""
        where = tuple(map(place, near))
        num_ended = num_items(following) - self._num_items
        if self._memo.until.get(where) == DEAD:
            return True
        if self._is_known(where, num_ended):
            return False
        found = self._until_by_probes(token_id, near) + num_ended
        if found < self._num_items + num_ended:
            foreseen = self._foreseen(token_id, where, near, num_ended)
            if foreseen is None:
                self._doubt(token_id, where, num_ended)
                return False
            found = foreseen
        if num_ended and found > self._num_items + num_ended:
            self._memo.until[where] = found - num_ended  # whatever the items are that end here
        elif not num_ended and found >= self._num_items:
            self._memo.until[where] = found
        return found == DEAD

    def _until_by_probes(self, token_id: int, near: list[State]) -> int:
        """In a string, a few bytes are tried that no earlier item goes on with: for how many items one is left."""
        num_free = 0
        taken = near_bytes(near)
        if len(near) == 1 and near[0].mode == "scalar" and near[0].notation == JSON:
            return self._num_items + num_longer(self._matcher.inner, self._vocabulary, token_id, near[0]) - 1
        if len(near) == 1 and near[0].mode in ("string", "key string") and taken is not None:
            ids, inner = self._vocabulary.ids, self._matcher.inner
            is_enough = near[0].mode == "key string" or self._is_same_item(near[0])
            num_refused = 0
            for byte in _PROBED:
                step = ids.get(bytes((byte,)))
                if byte in taken or step is None:
                    continue
                if inner.validate([token_id, step]) < 2:
                    num_refused += 1
                    if num_refused >= _MAX_REFUSED and not num_free:
                        break
                    continue
                num_free += 1
                if self._is_same_item(near[0]):
                    self._memo.ways[place(near[0]),] = near[0].text + bytes((byte,))
                if is_enough or num_free >= _MAX_PROBED:
                    break
        return self._num_items + num_free - 1

    def _is_same_item(self, state: State) -> bool:
        """A string that is open there is the item that is open or comes next here."""
        here = self._states[0].frames
        return (
            self._is_plain
            and state.mode == "string"
            and len(state.frames) == len(here)
            and state.frames[-1].index == here[-1].index
        )

    def _doubt(self, token_id: int, where: Place, num_ended: int) -> None:
        """Whether there is a way on has not been found out."""
        self._memo.doubts[where] = self._num_items + num_ended
        self._doubted.add(token_id)
        self._doubtful.update(_beginnings(self._vocabulary.tokens[token_id]))

    def _foreseen(self, token_id: int, where: Place, near: list[State], num_ended: int) -> int | None:
        """See ``Foresight.until``; ``None`` if it came to its bounds, now or when it was looked for from there before."""
        is_doubtful = self._memo.doubts.get(where) == self._num_items + num_ended
        if is_doubtful or self._vocabulary.tokens[token_id] in self._doubtful:
            return None
        probe = self._probe = self._probe or self._matcher.clone()
        try:
            probe.advance(token_id)
            memo = Memo() if num_ended else self._memo
            foresight = Foresight(probe, self._vocabulary, memo)
            found = foresight.until()
            probe.rollback(1)
        except (ExhaustedError, MatcherError):
            self._probe = None  # it may be anywhere
            return None
        if foresight.way is not None and len(near) == 1 and self._is_same_item(near[0]):
            self._memo.ways[place(near[0]),] = foresight.way
        return found

    def _arrival(self, token_id: int) -> Arrival | None:
        if self._arrivals is None:
            return UNKNOWN
        key = self._way_out(token_id)
        if key not in self._arrivals:
            try:
                after = guarded_states(self._matcher.after(token_id))
            except (RepetitionError, LostError):
                return UNKNOWN  # elsewhere it may come through
            self._arrivals[key] = arrived(self._states[0], after)
        return self._arrivals[key]

    def _way_out(self, token_id: int) -> int | bytes:
        """What of the token decides where it leads."""
        state = self._states[0]
        is_out = state.mode == "string" and state.notation == JSON
        return self._vocabulary.way_out(token_id) if is_out else token_id


def _beginnings(text: bytes) -> Iterator[bytes]:
    return (text[:size] for size in range(1, len(text) + 1))


def _is_item_by_text(state: State) -> bool:
    """A string is open or may begin that is an item of the outermost watched array, and only its text decides whether it is
    an earlier one."""
    at, frame = scope_index(state), state.frames[-1]
    return (
        state.notation == JSON
        and at == len(state.frames) - 1
        and frame.is_array
        and not (frame.kept or frame.rivals or frame.slots or frame.reserved or state.bans)
        and state.mode in ("value", "string")
        and (not state.text or is_plain_string(state.text))
    )
