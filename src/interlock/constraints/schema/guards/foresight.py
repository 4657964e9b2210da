"""Whether an item that has begun like earlier ones can still become a new one."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from interlock.constraints.bitmask import allowed_ids, those_allowed
from interlock.constraints.providers.base import Matcher
from interlock.constraints.schema.guards.memo import Memo
from interlock.constraints.schema.guards.rivals import echoes, is_near, place, scope
from interlock.constraints.schema.guards.scan import RepetitionError, State, inside
from interlock.constraints.schema.guards.turn import LostError, Readings, guarded_states
from interlock.constraints.schema.guards.values import may_become
from interlock.constraints.schema.guards.vocabulary import COMPLETER, GuardVocabulary

DEAD = -1
MAX_LOOKS = 2_000
_MAX_DEPTH = 120
_MAX_STEPS = 10  # to where new items are many
_UNCLEAR = ("scalar", "string escape", "key escape")
_QUOTE = ord('"')
_LONGER = b"1234567890."
_MAX_LONGER = 6
_DIGITS = frozenset(b"0123456789")
RESPELT = frozenset(b"\\ \t\n\r")
"""Bytes that may go on as something does in another spelling."""


class Probe(Protocol):
    """A guarded matcher, or a copy of it that nobody else uses. See ``GuardedMatcher``."""

    inner: Matcher

    @property
    def readings(self) -> Readings: ...

    def after(self, token_id: int) -> Readings: ...

    def advance(self, token_id: int) -> None: ...

    def rollback(self, num_tokens: int) -> None: ...

    def clone(self) -> Probe: ...

    def close(self) -> None: ...


class ExhaustedError(Exception):
    """Too much to look at."""


def num_items(readings: Readings) -> int:
    """Complete items of the scope."""
    found = map(scope, guarded_states(readings))
    return max((frame.seen.count for frame in found if frame is not None), default=0)


class Foresight:
    """Looks ahead with ``probe``, which it leaves where it was. memo: what is known already, and what is found out.

    A way on is searched byte by byte, and only among texts that may still repeat something: any other one is a way on. There
    are no more of them than earlier items have beginnings, so the search ends; ``MAX_LOOKS`` bounds its time where
    equal items have many spellings. Raises ``ExhaustedError`` there. way: the beginning of a string that was found to be new,
    where the way on is one. conflicts: all repetitions that it met.
    """

    def __init__(self, probe: Probe, vocabulary: GuardVocabulary, memo: Memo) -> None:
        self._probe = probe
        self._vocabulary = vocabulary
        self._until = memo.until
        self._row = np.zeros(vocabulary.num_words, dtype=np.int32)
        self._num_looks = 0
        self.conflicts: list[RepetitionError] = []
        self._start = self._progress()
        self._num_items = num_items(probe.readings)
        self.way: bytes | None = None

    def until(self, depth: int = 0) -> int:
        """The number of items up to which there is a way on from the probe's place, at least the present one; ``DEAD``
        if there is none."""
        probe, passed, num_taken = self._probe, [], 0
        try:
            while (found := self._known()) is None:
                states = self._near()
                passed.append(tuple(map(place, states)))
                choices = self._choices()
                if len(choices) != 1:
                    found = self._among(choices, states, depth)
                    break
                if not self._advances(choices[0]):
                    found = DEAD
                    break
                num_taken += 1
        finally:
            probe.rollback(num_taken)
        self._until.update(dict.fromkeys(passed, found))
        return found

    def _near(self) -> list[State]:
        return [state for state in guarded_states(self._probe.readings) if is_near(state)]

    def _known(self) -> int | None:
        """What can be told without a look."""
        states = self._near()
        if not states or self._is_through():
            return self._num_items
        known = self._until.get(tuple(map(place, states)))
        return known if known is not None and (known == DEAD or known >= self._num_items) else None

    def _is_through(self) -> bool:
        """An item is complete, or all of them are."""
        return self._progress() != self._start or self._probe.inner.is_accepting

    def _progress(self) -> tuple[int | None, ...]:
        """Changes when an item of a scope is complete, or the scope is closed."""
        found = map(scope, guarded_states(self._probe.readings))
        return tuple(None if frame is None else frame.seen.count for frame in found)

    def _choices(self) -> list[int]:
        """The ways to go on by one byte, or the only token: forced text comes in its canonical ones."""
        self._num_looks += 1
        if self._num_looks > MAX_LOOKS:
            raise ExhaustedError
        row = self._row
        self._probe.inner.fill(row)
        if np.count_nonzero(row) == 1 and len(choices := allowed_ids(row)) == 1:
            return choices
        step_ids = self._vocabulary.step_ids
        found: list[int] = those_allowed(row, step_ids).tolist()
        return found

    def _among(self, choices: list[int], states: list[State], depth: int) -> int:
        tokens = self._vocabulary.tokens
        taken = near_bytes(states)
        free = [] if taken is None else [one for one in choices if tokens[one][0] not in taken]
        if free and states[0].mode == "string":
            self.way = states[0].text + tokens[free[0]]
            return self._num_items + len(free) - 1  # each further item takes one of them at most
        if depth > _MAX_DEPTH:
            raise ExhaustedError
        for one in (*free[:1], *self._ordered(choices)):
            found = self._behind(one, depth)
            if found != DEAD:
                return found
        return DEAD

    def _ordered(self, choices: list[int]) -> list[int]:
        """What ends an item first, zeros last: they may go on for ever and change nothing."""
        tokens = self._vocabulary.tokens
        return sorted(choices, key=lambda one: (COMPLETER.match(tokens[one]) is None, -tokens[one][0]))

    def _by_quote(self, token_id: int) -> tuple[bool, int]:
        """Strings first: there are many of them."""
        byte = self._vocabulary.tokens[token_id][0]
        return byte != _QUOTE, byte

    def _behind(self, token_id: int, depth: int) -> int:
        probe = self._probe
        if not self._advances(token_id):
            return DEAD
        try:
            if any(map(is_near, guarded_states(probe.readings))):
                return self.until(depth + 1)
            return self._num_items + self._num_more()
        finally:
            probe.rollback(1)

    def _advances(self, token_id: int) -> bool:
        """Go on with a token, if nothing is repeated by it."""
        try:
            self._probe.advance(token_id)
        except RepetitionError as error:
            self.conflicts.append(error)
        except LostError:
            pass
        else:
            return True
        return False

    def _num_more(self) -> int:
        """From where nothing is repeated: how many other items there are at least, as far as that is easily seen."""
        probe, num_taken = self._probe, 0
        try:
            while num_taken < _MAX_STEPS and not self._is_through():
                choices = self._choices()
                states = guarded_states(probe.readings)
                found = num_new(states[0], {self._vocabulary.tokens[one][0] for one in choices})
                if found > 1 or len(states) > 1 or not choices:
                    return max(0, found - 1)
                probe.advance(min(choices, key=self._by_quote))
                num_taken += 1
        except (RepetitionError, LostError):
            return 0
        finally:
            probe.rollback(num_taken)
        return 0


def near_bytes(states: list[State]) -> set[int] | None:
    """The bytes that may lead towards a repetition; ``None`` where that is not easily seen."""
    if any(state.mode in _UNCLEAR or b"\\u" in state.text for state in states):
        return None
    return {rest[0] for state in states for rest in echoes(state)}.union(RESPELT)


def num_new(state: State, first: set[int]) -> int:
    """How many of the ways to go on, given by their first bytes, lead each to items of its own that are no repetition, as
    far as that is easily seen: characters of a string and digits do."""
    if state.mode not in ("string", "scalar", "value") or b"\\u" in state.text:
        return 0
    free = first.difference(rest[0] for rest in echoes(state))
    return len(free - RESPELT if state.mode == "string" else free & _DIGITS)


def num_longer(inner: Matcher, vocabulary: GuardVocabulary, token_id: int, state: State) -> int:
    """How many bytes behind the token make a number one that no earlier item begins with, as far as there is need to know.
    state: behind the token, inside a number."""
    others = list(inside(state.frames[-1]))
    num_free = 0
    for byte in _LONGER:
        step = vocabulary.ids.get(bytes((byte,)))
        text = state.text + bytes((byte,))
        if step is None or any(may_become(text, one) for one in others):
            continue
        num_free += inner.validate([token_id, step]) == 2
        if num_free >= _MAX_LONGER:
            break
    return num_free
