"""A matcher whose masks also leave out the tokens that would complete a repetition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from interlock.constraints.providers.base import DraftPlan, Matcher, MatcherError, Row
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.guards.scan import RepetitionError, State, feed

_COMPLETERS = frozenset(b'",]}')


_MAX_CHOICES = 12  # more ways than that to go on are no dead end
_MAX_FORESEEN = 300  # steps looked ahead for one mask


class GuardVocabulary:
    """The tokens that can complete an item or a key. Built once for a vocabulary."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens
        found = [number for number, token in enumerate(tokens) if _COMPLETERS.intersection(token)]
        self.completers: NDArray[np.int64] = np.array(found, dtype=np.int64)


class GuardedMatcher:
    """A ``Matcher`` of a grammar whose whole text is one guarded JSON document. It rolls back with the matcher
    inside. Where every continuation would repeat something, it fails with a ``MatcherError``."""

    def __init__(self, inner: Matcher, plan: GuardPlan, vocabulary: GuardVocabulary) -> None:
        self._inner = inner
        self._plan = plan
        self._vocabulary = vocabulary
        self._words = (len(vocabulary.tokens) + 31) // 32
        self._states = [State()]  # one for each accepted token, the start first

    @property
    def error(self) -> str | None:
        return self._inner.error

    def fill(self, row: Row) -> None:
        self._veto(row)
        if self._states[-1].watchful:
            self._foresee(row)
            if not row.any():
                raise MatcherError("every continuation repeats an earlier item")

    def _veto(self, row: Row) -> None:
        """The mask without tokens that complete a repetition."""
        self._inner.fill(row)
        state = self._states[-1]
        if not state.watchful:
            return
        numbers = self._vocabulary.completers
        words, bits = numbers >> 5, (numbers & 31).astype(np.int32)
        for number in numbers[(row[words] >> bits) & 1 == 1]:
            if self._repeats(state, int(number)):
                _clear(row, int(number))

    def _foresee(self, row: Row) -> None:
        """Also without tokens after which, within a few steps, every continuation would repeat something: where
        items are finite, generation must not walk into the last path that is left but taken."""
        choices = _few(row)
        if choices is None:
            return
        budget = [_MAX_FORESEEN]
        start = self._states[-1].progress
        for number in choices:
            if self._is_doomed(number, start, budget):
                _clear(row, number)

    def _is_doomed(self, token_id: int, start: tuple[int, ...], budget: list[int]) -> bool:
        if self._inner.is_accepting and self._states[-1].mode == "end":
            return False
        try:
            self.accept(token_id)
        except MatcherError:
            return True
        try:
            if self._states[-1].progress != start or self._inner.is_accepting:
                return False
            row = np.zeros(self._words, dtype=np.int32)
            self._veto(row)
            choices = _few(row)
            if choices is None:
                return False
            for number in choices:
                budget[0] -= 1
                if budget[0] < 0 or not self._is_doomed(number, start, budget):
                    return False
            return True
        finally:
            self.rollback(1)

    def _repeats(self, state: State, token_id: int) -> bool:
        try:
            feed(self._plan, state, self._bytes(token_id))
        except RepetitionError:
            return True
        return False

    def _bytes(self, token_id: int) -> bytes:
        return self._vocabulary.tokens[token_id] if token_id < len(self._vocabulary.tokens) else b""

    def accept(self, token_id: int) -> None:
        if self._inner.is_accepting and self._states[-1].mode == "end":
            following = self._states[-1]  # a stop id
        else:
            try:
                following = feed(self._plan, self._states[-1], self._bytes(token_id))
            except RepetitionError:
                raise MatcherError("the token repeats an earlier item") from None
        self._inner.accept(token_id)
        self._states.append(following)

    def validate(self, token_ids: Sequence[int]) -> int:
        return self._legal(token_ids, self._inner.validate(token_ids))

    def _legal(self, token_ids: Sequence[int], limit: int) -> int:
        state = self._states[-1]
        for count, token_id in enumerate(token_ids[:limit]):
            try:
                state = feed(self._plan, state, self._bytes(token_id))
            except RepetitionError:
                return count
        return limit

    def rollback(self, num_tokens: int) -> None:
        self._inner.rollback(num_tokens)
        if num_tokens:
            del self._states[-num_tokens:]

    def forced_tokens(self) -> list[int]:
        forced = self._inner.forced_tokens()
        return forced[: self._legal(forced, len(forced))]

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        taken = 0
        try:
            for index in range(len(draft) + 1):
                self.fill(rows[index])
                if index == len(draft) or not rows[index][draft[index] >> 5] >> (draft[index] & 31) & 1:
                    break
                self.accept(draft[index])
                taken += 1
        finally:
            self.rollback(taken)
        return DraftPlan(num_valid=taken, rows=rows[: taken + 1])

    @property
    def is_accepting(self) -> bool:
        return self._inner.is_accepting

    @property
    def is_terminated(self) -> bool:
        return self._inner.is_terminated

    def clone(self) -> GuardedMatcher:
        twin = GuardedMatcher(self._inner.clone(), self._plan, self._vocabulary)
        twin._states = list(self._states)
        return twin

    def close(self) -> None:
        self._inner.close()


def _clear(row: Row, token_id: int) -> None:
    row.view(np.uint32)[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))


def _few(row: Row) -> list[int] | None:
    """The allowed tokens, ``None`` if they are many."""
    words = np.flatnonzero(row)
    if len(words) > _MAX_CHOICES:
        return None
    out = [int(word) * 32 + bit for word in words for bit in range(32) if int(row[word]) >> bit & 1]
    return out if len(out) <= _MAX_CHOICES else None
