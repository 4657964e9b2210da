"""A grammar engine in a few lines of Python: the grammar lists every legal answer as token ids.

For tests of the engine and of what stands around matchers. A grammar is JSON: a list of lists of ids, e.g.
``[[104, 105], [104, 111]]``. ``"error"`` in place of an id makes ``fill`` fail there, and ``"spent"`` uses up what all
matchers of the grammar share.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interlock.constraints import bitmask
from interlock.constraints.providers.base import DraftPlan, MatcherError, Row, SpentBy, Unguarded, require_rows
from interlock.core.tokenizer import Tokenizer, Vocabulary
from interlock.errors import InterlockError

_ERROR, _SPENT = -1, -2
_Answer = tuple[int, ...]


class FakeProvider:
    """Provider over lists of answers."""

    name = "fake"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary = tokenizer.vocabulary
        self._stop_ids = frozenset(tokenizer.vocabulary.stop_ids)
        self._vocab_size = tokenizer.vocabulary.size

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    def compile(self, grammar: str) -> FakeGrammar:
        try:
            answers = frozenset(
                tuple({"error": _ERROR, "spent": _SPENT}.get(item) or int(item) for item in answer)
                for answer in json.loads(grammar)
            )
        except (ValueError, TypeError) as exc:
            raise InterlockError("invalid_grammar", f"not a list of lists of ids: {exc}") from None
        if any(item >= self._vocab_size for answer in answers for item in answer):
            raise InterlockError("invalid_grammar", f"ids must be below {self._vocab_size}")
        if not answers:
            raise InterlockError("invalid_grammar", "the grammar matches nothing")
        return FakeGrammar(answers, self._stop_ids)


@dataclass(slots=True)
class _Shared:
    """What the matchers of a grammar share."""

    is_spent: bool = False


class FakeGrammar:
    """Legal answers."""

    def __init__(self, answers: frozenset[_Answer], stop_ids: frozenset[int]) -> None:
        self._answers = answers
        self._stop_ids = stop_ids
        self._shared = _Shared()

    @property
    def is_spent(self) -> bool:
        return self._shared.is_spent

    @property
    def num_bytes(self) -> int:
        return 100 + sum(8 * len(answer) for answer in self._answers)

    def matcher(self) -> FakeMatcher:
        return FakeMatcher(self._answers, self._stop_ids, (), self._shared)


class FakeMatcher(Unguarded):
    """One sequence: the ids accepted so far, a stop id included."""

    def __init__(
        self, answers: frozenset[_Answer], stop_ids: frozenset[int], accepted: _Answer, shared: _Shared
    ) -> None:
        self._answers = answers
        self._stop_ids = stop_ids
        self._accepted = accepted
        self._shared = shared
        self._error: str | None = None
        self.spent_by: SpentBy | None = None

    @property
    def error(self) -> str | None:
        return self._error

    @property
    def is_accepting(self) -> bool:
        self._check()
        return self._ended or self._accepted in self._answers

    @property
    def is_terminated(self) -> bool:
        self._check()
        return self._ended or not self._next_ids()

    def fill(self, row: Row) -> None:
        self._check()
        following = self._next_ids()
        if _ERROR in following:
            self._fail("the grammar says so")
        if _SPENT in following:
            self._shared.is_spent, self.spent_by = True, "itself"
            self._fail("used up")
        bitmask.set_only(row, following | (self._stop_ids if self.is_accepting else frozenset()))

    def accept(self, token_id: int) -> None:
        self._check()
        if not self._is_legal(token_id):
            self._fail(f"token {token_id} is not allowed")
        self._accepted += (token_id,)

    def validate(self, token_ids: Sequence[int]) -> int:
        self._check()
        probe = self.clone()
        for num_valid, token_id in enumerate(token_ids):
            if not probe._is_legal(token_id):
                return num_valid
            probe.accept(token_id)
        return len(token_ids)

    def rollback(self, num_tokens: int) -> None:
        self._check()
        if not 0 <= num_tokens <= len(self._accepted):
            raise ValueError(f"cannot undo {num_tokens} of {len(self._accepted)} tokens")
        self._accepted = self._accepted[: len(self._accepted) - num_tokens]

    def forced_tokens(self) -> list[int]:
        self._check()
        probe = self.clone()
        forced: list[int] = []
        while len(following := probe._next_ids()) == 1 and not probe._is_open:
            forced += following
            probe.accept(forced[-1])
        return forced

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        require_rows(draft, rows)
        self.fill(rows[0])
        probe = self.clone()
        num_valid = 0
        with contextlib.suppress(MatcherError):
            for token_id in draft:
                probe.accept(token_id)
                probe.fill(rows[num_valid + 1])
                num_valid += 1
        return DraftPlan(num_valid=num_valid, rows=rows[: num_valid + 1])

    def parallel_filler(self, threads: int) -> None:  # noqa: ARG002 - the protocol's
        return None

    def clone(self) -> FakeMatcher:
        self._check()
        return FakeMatcher(self._answers, self._stop_ids, self._accepted, self._shared)

    def close(self) -> None:
        self._error = self._error or "closed"

    @property
    def _is_open(self) -> bool:
        """More than one id may follow, or none can be told."""
        return self.is_accepting or min(self._next_ids()) < 0

    @property
    def _ended(self) -> bool:
        return bool(self._accepted) and self._accepted[-1] in self._stop_ids

    def _next_ids(self) -> frozenset[int]:
        at = len(self._accepted)
        return frozenset(
            answer[at] for answer in self._answers if len(answer) > at and answer[:at] == self._accepted
        )

    def _is_legal(self, token_id: int) -> bool:
        if self._ended:
            return False
        return token_id in self._next_ids() or (token_id in self._stop_ids and self.is_accepting)

    def _check(self) -> None:
        if self._error is not None:
            raise MatcherError(self._error)
        if self._shared.is_spent:
            self.spent_by = "others"
            self._fail("used up by others")

    def _fail(self, message: str) -> None:
        self._error = message
        raise MatcherError(message)
