"""A matcher whose masks also leave out the tokens that would complete a repetition."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from interlock.constraints import bitmask
from interlock.constraints.providers.base import (
    CompiledGrammar,
    DraftPlan,
    Matcher,
    MatcherError,
    ParallelFiller,
    Row,
    SpentBy,
)
from interlock.constraints.schema.guards import keys
from interlock.constraints.schema.guards.arrivals import Arrivals
from interlock.constraints.schema.guards.backtracking import (
    Culprit,
    History,
    Hold,
    conflicts,
    forbid,
    hold_after,
    with_ban,
)
from interlock.constraints.schema.guards.effort import effort
from interlock.constraints.schema.guards.keys import KeyWatch
from interlock.constraints.schema.guards.narrowing import Narrowing
from interlock.constraints.schema.guards.rivals import is_near
from interlock.constraints.schema.guards.room import in_question
from interlock.constraints.schema.guards.scan import RepetitionError, State
from interlock.constraints.schema.guards.turn import GuardedTurn, LostError, Readings, guarded_states
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary

MAX_MASK_S = 2.0
"""CPU time of guards in one mask of a sequence that is generated; most take under a millisecond. Who needs more has held up its
neighbours once, and ends."""


class GuardedGrammar:
    """A grammar with a guard."""

    def __init__(self, inner: CompiledGrammar, turn: GuardedTurn, vocabulary: GuardVocabulary) -> None:
        self._inner = inner
        self._turn = turn
        self._vocabulary = vocabulary
        self._arrivals: Arrivals = {}
        for notation in turn.notations():
            vocabulary.prepare(notation)

    @property
    def num_bytes(self) -> int:
        return self._inner.num_bytes

    @property
    def is_spent(self) -> bool:
        return self._inner.is_spent

    def matcher(self) -> GuardedMatcher:
        return GuardedMatcher(self._inner.matcher(), self._turn, self._vocabulary, self._arrivals)


class _Watch(NamedTuple):
    """What to watch at ``readings``. guarded: see ``guarded_states``. is_quiet: no token can repeat anything."""

    readings: Readings
    keys: KeyWatch
    guarded: list[State]
    is_quiet: bool

    @staticmethod
    def at(readings: Readings, vocabulary: GuardVocabulary) -> _Watch:
        watch, guarded = keys.watch(readings, vocabulary), guarded_states(readings)
        return _Watch(readings, watch, guarded, not guarded and (watch is keys.NOTHING or watch.is_quiet))


class GuardedMatcher:
    """A ``Matcher`` of a turn in which some JSON values are guarded. It rolls back with the matcher inside. Where
    every continuation would repeat something, it fails, unless it can ``backtrack``. arrivals: shared by all matchers of a grammar."""

    def __init__(
        self, inner: Matcher, turn: GuardedTurn, vocabulary: GuardVocabulary, arrivals: Arrivals
    ) -> None:
        self.inner = inner
        self._turn = turn
        self._vocabulary = vocabulary
        self._arrivals = arrivals
        self._readings = [turn.start()]  # one for each accepted token, the start first
        self._watch: _Watch | None = None
        self._holds: list[Hold | None] = [None]  # likewise
        self._error: str | None = None
        self._is_stuck = False
        self.num_vetoed = 0

    @property
    def error(self) -> str | None:
        return self._error or self.inner.error

    @property
    def spent_by(self) -> SpentBy | None:
        return self.inner.spent_by

    @property
    def readings(self) -> Readings:
        """Where the turn stands."""
        return self._readings[-1]

    def fill(self, row: Row) -> None:
        self._check()
        self.inner.fill(row)
        self.narrow_in_time(row)

    def narrow_in_time(self, row: Row) -> None:
        """``narrow`` that fails where it has taken more than ``MAX_MASK_S``."""
        if self._watched().is_quiet:
            return
        started = time.thread_time()
        self.narrow(row)
        seconds = time.thread_time() - started
        if seconds > MAX_MASK_S:
            self._fail(
                f"guards took {seconds:.1f} s of CPU time for one mask; at most {MAX_MASK_S:g} s are allowed"
            )

    def narrow(self, row: Row) -> None:
        """Take from ``row``, the mask of the grammar, what would repeat something."""
        watch = self._watched()
        if watch.is_quiet or not row.any():
            return
        self._narrow_keys(row, watch.keys)
        states = watch.guarded
        if not states:
            return
        tokens = in_question(states[0], row, self._vocabulary) if len(self.readings) == 1 else None
        if tokens == [] and not is_near(states[0]):
            return
        self.num_vetoed += Narrowing(self, row, self._vocabulary, self._arrivals).run(tokens)
        if not row.any():
            self._is_stuck = True
            self._fail("every continuation repeats an earlier item")

    def _narrow_keys(self, row: Row, watch: KeyWatch) -> None:
        vetoed = watch.repeating(row, self._vocabulary, self.after)
        if not vetoed.size:
            return
        bitmask.clear_all(row, vetoed)
        self.num_vetoed += vetoed.size
        if not row.any():
            self._fail("every continuation repeats an earlier key")

    def _watched(self) -> _Watch:
        """What to watch at ``readings``."""
        watch, readings = self._watch, self._readings[-1]
        if watch is None or watch.readings is not readings:
            watch = self._watch = _Watch.at(readings, self._vocabulary)
        return watch

    def accept(self, token_id: int) -> None:
        self._check()
        try:
            self.advance(token_id)
            self._watched()  # here, as masks are waited for
        except RepetitionError:
            self._fail("the token repeats an earlier item")
        except LostError:
            if self.inner.validate([token_id]) == 1:
                self._fail("the guard lost its place")
            self.inner.accept(token_id)

    def advance(self, token_id: int) -> None:
        """``accept`` that raises ``RepetitionError`` or ``LostError`` where the guard refuses, and is unchanged then."""
        before = self._readings[-1]
        following = self._after(before, token_id)
        self.inner.accept(token_id)
        is_same = following is before  # then nothing is watched here
        hold = None if is_same else hold_after(self._holds[-1], len(self._readings) - 1, before, following)
        self._holds.append(hold)
        self._readings.append(following)

    def after(self, token_id: int) -> Readings:
        """``readings`` behind one more token. Raises ``RepetitionError``, ``LostError``."""
        return self._after(self.readings, token_id)

    def _after(self, readings: Readings, token_id: int) -> Readings:
        effort.num_followed += 1
        vocabulary = self._vocabulary
        if token_id in vocabulary.stop_ids:
            return readings
        return self._turn.after(readings, vocabulary.text(token_id))

    def _legal(self, token_ids: Sequence[int]) -> Iterator[Readings]:
        """Readings after each token as far as nothing is repeated."""
        readings = self.readings
        with contextlib.suppress(RepetitionError, LostError):
            for token_id in token_ids:
                readings = self._after(readings, token_id)
                yield readings

    def validate(self, token_ids: Sequence[int]) -> int:
        self._check()
        return sum(1 for _ in self._legal(token_ids[: self.inner.validate(token_ids)]))

    def rollback(self, num_tokens: int) -> None:
        self._check()
        self._undo(num_tokens)

    def _undo(self, num_tokens: int) -> None:
        self.inner.rollback(num_tokens)
        if num_tokens:
            del self._readings[-num_tokens:]
            del self._holds[-num_tokens:]

    @property
    def num_held(self) -> int:
        hold = self._holds[-1]
        return 0 if hold is None else len(self._holds) - 1 - hold.since

    def backtrack(self, limit: int) -> int:
        end = len(self._readings)
        floor = end - 1 - min(limit, self.num_held)
        row = np.zeros(self._vocabulary.num_words, dtype=np.int32)
        while self._is_stuck and (culprit := self._culprit(floor)) is not None:
            self._error, self._is_stuck = None, False
            self._write_anew(culprit)
            with contextlib.suppress(MatcherError):
                self.fill(row)
                return end - len(self._readings)
        return 0

    def _culprit(self, floor: int) -> Culprit | None:
        hold = self._holds[-1]
        met: list[RepetitionError] = []
        if hold is None or hold.num_items is None:
            probe = self._twin()
            met = conflicts(probe, self._vocabulary)
            probe.close()
        before = len(self._readings) - 2
        if not met:  # what is in the way is inside the open item, or cannot be told
            return Culprit(before, None) if before >= floor else None
        return History(self._readings).culprit(met, floor)

    def _write_anew(self, culprit: Culprit) -> None:
        """Go back to ``culprit``, later than which nothing needs to change."""
        learned = next((state.bans for state in guarded_states(self.readings)), ())
        if culprit.ban is None:
            forbid(self.readings)
        self._undo(len(self._readings) - 1 - culprit.at)
        if culprit.ban is not None:
            self._readings[-1] = with_ban(self.readings, culprit.ban, learned)

    def forced_tokens(self) -> list[int]:
        self._check()
        forced = self.inner.forced_tokens()
        return forced[: sum(1 for _ in self._legal(forced))]

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        self._check()
        plan = self.inner.plan(draft, rows)
        self.narrow_in_time(rows[0])
        legal = list(self._legal(draft[: plan.num_valid]))
        num_valid = len(legal)
        if not all(_Watch.at(one, self._vocabulary).is_quiet for one in (self.readings, *legal)):
            num_valid = self._narrow_behind(draft[:num_valid], rows)
        return DraftPlan(num_valid=num_valid, rows=rows[: num_valid + 1])

    def _narrow_behind(self, draft: Sequence[int], rows: NDArray[np.int32]) -> int:
        """Narrow the rows behind the first on a copy, which takes the errors with it."""
        probe = self.clone()
        num_valid = 0
        with contextlib.suppress(MatcherError):
            for token_id in draft:
                if not bitmask.is_allowed(rows[num_valid], token_id):
                    break
                probe.accept(token_id)
                probe.narrow_in_time(rows[num_valid + 1])
                num_valid += 1
        probe.close()
        return num_valid

    @property
    def is_accepting(self) -> bool:
        self._check()
        return self.inner.is_accepting

    @property
    def is_terminated(self) -> bool:
        self._check()
        return self.inner.is_terminated

    def parallel_filler(self, threads: int) -> ParallelFiller | None:
        filler = self.inner.parallel_filler(threads)
        return None if filler is None else _GuardedFiller(filler)

    def clone(self) -> GuardedMatcher:
        self._check()
        return self._twin()

    def _twin(self) -> GuardedMatcher:
        twin = GuardedMatcher(self.inner.clone(), self._turn, self._vocabulary, self._arrivals)
        twin._readings = list(self._readings)
        twin._holds = list(self._holds)
        return twin

    def close(self) -> None:
        self.inner.close()

    def _check(self) -> None:
        if self._error is not None:
            raise MatcherError(self._error)

    def _fail(self, message: str) -> NoReturn:
        self._error = message
        raise MatcherError(message)


class _GuardedFiller:
    """The grammar's masks in native code, what guards take from them one by one."""

    def __init__(self, inner: ParallelFiller) -> None:
        self._inner = inner

    def fill(self, jobs: Sequence[tuple[Matcher, int]], rows: NDArray[np.int32]) -> None:
        guarded = [
            (matcher, row)
            for matcher, row in jobs
            if isinstance(matcher, GuardedMatcher) and matcher.error is None
        ]
        self._inner.fill([(matcher.inner, row) for matcher, row in guarded], rows)
        for matcher, row in guarded:
            if matcher.error is None:
                with contextlib.suppress(MatcherError):  # the matcher holds it
                    matcher.narrow_in_time(rows[row])
