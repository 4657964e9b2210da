"""A matcher whose masks also leave out the tokens that would complete a repetition."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

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
)
from interlock.constraints.schema.guards.scan import RepetitionError, State
from interlock.constraints.schema.guards.turn import GuardedTurn, InValue, LostError, Readings, watched
from interlock.constraints.schema.guards.vocabulary import COMPLETER, GuardVocabulary

# may begin another spelling of a number or a character, stand before an item, or lead to the next one
_UNSURE = re.compile(rb"[.eE\-\\,]|^[ \t\n\r]")
_MAX_CHOICES = 64  # more ways than that to go on are no dead end
_MAX_FORESEEN = 300  # tokens looked ahead for one mask


class GuardedGrammar:
    """A grammar with a guard."""

    def __init__(self, inner: CompiledGrammar, turn: GuardedTurn, vocabulary: GuardVocabulary) -> None:
        self._inner = inner
        self._turn = turn
        self._vocabulary = vocabulary

    @property
    def num_bytes(self) -> int:
        return self._inner.num_bytes

    def matcher(self) -> GuardedMatcher:
        return GuardedMatcher(self._inner.matcher(), self._turn, self._vocabulary)


class GuardedMatcher:
    """A ``Matcher`` of a turn in which some JSON values are guarded. It rolls back with the matcher inside. Where
    every continuation would repeat something, it fails."""

    def __init__(self, inner: Matcher, turn: GuardedTurn, vocabulary: GuardVocabulary) -> None:
        self.inner = inner
        self._turn = turn
        self._vocabulary = vocabulary
        self._states = [turn.start()]  # one for each accepted token, the start first
        self._error: str | None = None
        self.num_vetoed = 0

    @property
    def error(self) -> str | None:
        return self._error or self.inner.error

    def fill(self, row: Row) -> None:
        self._check()
        self.inner.fill(row)
        self.narrow(row)

    def narrow(self, row: Row) -> None:
        """Take from ``row``, the mask of the grammar, what would repeat something."""
        if not self._watched() or not row.any():
            return
        self._veto(row)
        self._foresee(row)
        if not row.any():
            self._fail("every continuation repeats an earlier item")

    def _watched(self) -> tuple[tuple[int, ...], ...]:
        return _progress(self._states[-1])

    def _veto(self, row: Row) -> None:
        readings = self._states[-1]
        known: dict[bytes, Readings | None] = {b"": readings}
        state = readings[0].state if len(readings) == 1 and isinstance(readings[0], InValue) else None
        tokens = self._vocabulary.tokens
        if state is not None and state.mode in ("string", "key string"):
            numbers = self._string_ends(row, state)
        else:
            numbers = _allowed(row & self._vocabulary.completers)
        for number in numbers:
            if self._repeats(tokens[number], known):
                _clear(row, number)
                self.num_vetoed += 1

    def _string_ends(self, row: Row, state: State) -> list[int]:
        """The tokens that end a string and might repeat something by that, or by what they have behind it."""
        vocabulary = self._vocabulary
        ends = state.string_ends()
        if ends is None:
            return _allowed(row & vocabulary.completers)
        plain = [one for end in ends for one in vocabulary.string_ends.get(end.encode(), ())]
        others = _allowed(
            row & (vocabulary.more_ends | vocabulary.escaped_ends if ends else vocabulary.more_ends)
        )
        return [one for one in plain if bitmask.is_allowed(row, one)] + others

    def _repeats(self, token: bytes, known: dict[bytes, Readings | None]) -> bool:
        """known: readings after beginnings of tokens, ``None`` where they repeat something. Nothing is completed but
        at the bytes that end an item, so tokens share most of the way."""
        readings, start = known[b""], 0
        for match in COMPLETER.finditer(token):
            head = token[: match.end()]
            if head not in known:
                assert readings is not None
                try:
                    known[head] = self._turn.after_text(readings, token[start : match.end()])
                except RepetitionError:
                    known[head] = None
                except LostError:
                    return True
            readings, start = known[head], match.end()
            if readings is None:
                return True
        return False

    def _foresee(self, row: Row) -> None:
        """Also without tokens after which every continuation would soon repeat something: where items are finite,
        generation must not walk into the last path that is left but taken."""
        choices = _few(row)
        if choices is None:  # nothing is lost but on the way of an earlier string
            choices = self._near(row)
        elif len(choices) == 1:
            return
        tokens = self._vocabulary.tokens
        ends = self._suspected_ends()
        if ends is not None:
            choices = [one for one in choices if not _leads_away(tokens[one], ends)]
        if not choices:
            return
        budget = [_MAX_FORESEEN]
        probe = self.clone()
        start = probe._watched()
        ways: list[bytes] = []
        for number in sorted(
            choices, key=lambda one: -len(tokens[one])
        ):  # a way answers for all its beginnings
            token = tokens[number]
            if number in self._vocabulary.stop_ids or any(way.startswith(token) for way in ways):
                continue
            way = probe._way_on(number, start, budget)
            if way is None:
                _clear(row, number)
            else:
                ways.append(way)
        probe.close()

    def _suspected_ends(self) -> list[bytes] | None:
        """See ``State.ends``: where equal items are spelt alike, nothing else can lead to a repetition."""
        found: list[bytes] = []
        for one in watched(self._states[-1]):
            ends = None if one.node.spellings else one.state.ends()
            if ends is None:
                return None
            found += ends
        return found

    def _near(self, row: Row) -> list[int]:
        """In a string inside an item: the tokens that go on as an earlier item does."""
        states = [one.state for one in watched(self._states[-1])]
        ends = None if any(one.begins_item for one in states) else self._suspected_ends()
        if ends is None:
            ends = [end for one in states for end in one.echoes()]
        near = {token_id for end in set(ends[-_MAX_CHOICES:]) for token_id in self._vocabulary.beginnings(end)}
        return [token_id for token_id in sorted(near) if bitmask.is_allowed(row, token_id)]

    def _way_on(self, token_id: int, start: tuple[tuple[int, ...], ...], budget: list[int]) -> bytes | None:
        """A text that begins with the token and repeats nothing until something is complete, found byte by byte;
        ``None`` if there is none. With the budget used up any text counts."""
        token = self._vocabulary.tokens[token_id]
        budget[0] -= 1
        if budget[0] < 0:
            return token
        try:
            self.accept(token_id)
        except MatcherError:
            self._error = None  # a repetition, of which the grammar inside knows nothing
            return None
        try:
            if self._watched() != start or self.inner.is_accepting:
                return token
            way = self._way_behind(start, budget)
            return None if way is None else token + way
        finally:
            self.rollback(1)

    def _way_behind(self, start: tuple[tuple[int, ...], ...], budget: list[int]) -> bytes | None:
        """``_way_on`` from here."""
        row = np.zeros(self._vocabulary.num_words, dtype=np.int32)
        self.inner.fill(row)
        choices = self._byte_choices(row)
        if choices is None:
            return b""
        tokens = self._vocabulary.tokens
        ends = self._suspected_ends()
        if ends is not None:
            away = next((one for one in choices if _leads_away(tokens[one], ends)), None)
            if away is not None:
                return tokens[away]
        known: dict[bytes, Readings | None] = {b"": self._states[-1]}
        for one in choices:
            if self._repeats(tokens[one], known):
                continue
            behind = known.get(tokens[one])
            if behind is not None and _progress(behind) != start:
                return tokens[one]
            way = self._way_on(one, start, budget)
            if way is not None:
                return way
        return None

    def _byte_choices(self, row: Row) -> list[int] | None:
        """The ways to go on by one byte; ``None`` if they are many."""
        if np.count_nonzero(row) == 1 and len(choices := _allowed(row)) == 1:
            return choices  # forced text comes in its canonical tokens
        step_ids = self._vocabulary.step_ids
        choices = step_ids[(row[step_ids >> 5] >> (step_ids & 31)) & 1 == 1].tolist()
        if len(choices) > _MAX_CHOICES:
            return None
        tokens = self._vocabulary.tokens
        # what ends an item first, zeros last: they may go on for ever and change nothing
        return sorted(choices, key=lambda one: (COMPLETER.match(tokens[one]) is None, -tokens[one][0]))

    def accept(self, token_id: int) -> None:
        self._check()
        try:
            following = self._after(self._states[-1], token_id)
        except RepetitionError:
            self._fail("the token repeats an earlier item")
        except LostError:
            if self.inner.validate([token_id]) == 1:
                self._fail("the guard lost its place")
            following = ()
        self.inner.accept(token_id)
        self._states.append(following)

    def _after(self, readings: Readings, token_id: int) -> Readings:
        vocabulary = self._vocabulary
        if token_id in vocabulary.stop_ids:
            return readings
        if token_id in vocabulary.special_ids:
            return self._turn.after_special(readings, token_id)
        text = vocabulary.tokens[token_id] if token_id < len(vocabulary.tokens) else b""
        return self._turn.after_text(readings, text)

    def _legal(self, token_ids: Sequence[int]) -> Iterator[Readings]:
        """Readings after each token as far as nothing is repeated."""
        readings = self._states[-1]
        with contextlib.suppress(RepetitionError, LostError):
            for token_id in token_ids:
                readings = self._after(readings, token_id)
                yield readings

    def validate(self, token_ids: Sequence[int]) -> int:
        self._check()
        return sum(1 for _ in self._legal(token_ids[: self.inner.validate(token_ids)]))

    def rollback(self, num_tokens: int) -> None:
        self._check()
        self.inner.rollback(num_tokens)
        if num_tokens:
            del self._states[-num_tokens:]

    def forced_tokens(self) -> list[int]:
        self._check()
        forced = self.inner.forced_tokens()
        return forced[: sum(1 for _ in self._legal(forced))]

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        self._check()
        plan = self.inner.plan(draft, rows)
        self.narrow(rows[0])
        legal = list(self._legal(draft[: plan.num_valid]))
        num_valid = len(legal)
        if any(map(watched, (self._states[-1], *legal))):
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
                probe.narrow(rows[num_valid + 1])
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
        twin = GuardedMatcher(self.inner.clone(), self._turn, self._vocabulary)
        twin._states = list(self._states)
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
                    matcher.narrow(rows[row])


def _clear(row: Row, token_id: int) -> None:
    row.view(np.uint32)[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))


def _allowed(row: Row) -> list[int]:
    words = np.flatnonzero(row)
    bits = np.unpackbits(row[words].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    which, bit = np.nonzero(bits)
    return [int(number) for number in words[which] * 32 + bit]


def _progress(readings: Readings) -> tuple[tuple[int, ...], ...]:
    return tuple(one.state.progress for one in watched(readings))


def _leads_away(token: bytes, ends: Sequence[bytes]) -> bool:
    """Behind ``token``, nothing that ``ends`` would make can come any more."""
    if _UNSURE.search(token):
        return False
    return not any(end.startswith(token) or token.startswith(end) for end in ends)


def _few(row: Row) -> list[int] | None:
    """The allowed tokens, ``None`` if they are many."""
    if np.count_nonzero(row) > _MAX_CHOICES:
        return None
    out = _allowed(row)
    return out if len(out) <= _MAX_CHOICES else None
