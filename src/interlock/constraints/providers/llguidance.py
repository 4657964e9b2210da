"""llguidance behind the provider border."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import llguidance
import numpy as np
from numpy.typing import NDArray

from interlock.constraints import bitmask
from interlock.constraints.providers.base import (
    DraftPlan,
    Matcher,
    MatcherError,
    ParallelFiller,
    Row,
    SpentBy,
    Unguarded,
    require_rows,
)
from interlock.constraints.providers.llguidance_compile import compile_native
from interlock.constraints.providers.llguidance_errors import (
    DEAD_END,
    is_fatal,
    is_spent,
    message_of,
)
from interlock.constraints.providers.llguidance_limits import parser_limits
from interlock.constraints.providers.llguidance_tokenizer import native_tokenizer
from interlock.core.tokenizer import Tokenizer, Vocabulary
from interlock.errors import InterlockError


class LLGuidanceProvider:
    """Grammar engine over one vocabulary. Thread-safe.

    Building it takes 1-4 s for a real vocabulary. Raises ``ValueError`` for one without a stop id.
    renews: a matcher whose lexer is spent compiles the grammar anew itself; else it fails, see ``spent_by``.
    """

    name = "llguidance"

    def __init__(self, tokenizer: Tokenizer, *, renews: bool = True) -> None:
        vocabulary = tokenizer.vocabulary
        if not vocabulary.stop_ids:
            raise ValueError("a vocabulary needs a stop id")
        self._vocabulary = vocabulary
        self._stop_ids = vocabulary.stop_ids
        self._num_words = bitmask.num_words(vocabulary.size)
        self._tokenizer = native_tokenizer(tokenizer)
        self._limits = parser_limits()
        self._renews = renews

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    def compile(self, grammar: str) -> LLGuidanceGrammar:
        """See ``Provider.compile``. The first mask is computed too: every copy inherits it, and it shows whether
        the grammar matches anything."""
        return LLGuidanceGrammar(
            self._compiled(grammar),
            self._stop_ids,
            self._num_words,
            len(grammar),
            functools.partial(self._compiled, grammar),
            renews=self._renews,
        )

    def _compiled(self, grammar: str) -> Any:
        return compile_native(self._tokenizer, grammar, self._limits)


class LLGuidanceGrammar:
    """A compiled grammar: a matcher at the start, copied with its first mask for each sequence. All copies share a lexer,
    whose states are bounded. compile_again: makes a native matcher that has one of its own."""

    def __init__(
        self,
        native: Any,
        stop_ids: tuple[int, ...],
        num_words: int,
        num_chars: int,
        compile_again: Callable[[], Any],
        *,
        renews: bool = True,
    ) -> None:
        self._native = native
        self._stop_ids = frozenset(stop_ids)
        self._num_words = num_words
        self._num_chars = num_chars
        self._compile_again = compile_again
        self._renews = renews
        self._lexer = Lexer()

    @property
    def is_spent(self) -> bool:
        return self._lexer.is_spent

    @property
    def num_bytes(self) -> int:
        """An estimate: 150 kB of fixed cost and 100 bytes for each character of the grammar."""
        return 150_000 + 100 * self._num_chars

    def matcher(self) -> LLGuidanceMatcher:
        if self._lexer.is_spent:
            self._native, self._lexer = self._compile_again(), Lexer()
        native, renew = self._native.deep_copy(), self._compile_again if self._renews else None
        return LLGuidanceMatcher(native, self._stop_ids, self._num_words, lexer=self._lexer, renew=renew)


@dataclass(slots=True)
class Lexer:
    """What copies of a native matcher share. is_spent: some of them can go no further; they do not all say so."""

    is_spent: bool = False


class LLGuidanceMatcher(Unguarded):
    """One sequence. Stop ids are handled here, so that all of them behave alike and rollback is exact.

    renew: makes a native matcher with a lexer of its own, for when the shared one is spent: no sequence suffers from what
    another one of the same grammar has used up. It is done once, and not for copies, which are there to look ahead.
    """

    def __init__(
        self,
        native: Any,
        stop_ids: frozenset[int],
        num_words: int,
        *,
        lexer: Lexer | None = None,
        accepted: Sequence[int] = (),
        ended: bool = False,
        renew: Callable[[], Any] | None = None,
    ) -> None:
        self._native = native
        self._stop_ids = stop_ids
        self._num_words = num_words
        self._lexer = lexer or Lexer()
        self._accepted = list(accepted)  # tokens the native matcher has taken
        self._ended = ended  # a stop id was accepted
        self._renew = renew
        self._error: str | None = None
        self.spent_by: SpentBy | None = None

    @property
    def native(self) -> Any:
        """llguidance's own matcher, for parallel fills."""
        return self._native

    @property
    def error(self) -> str | None:
        return self._error

    @property
    def is_accepting(self) -> bool:
        return self._ended or bool(self._call("is_accepting"))

    @property
    def is_terminated(self) -> bool:
        return self._ended or bool(self._call("is_stopped"))

    @property
    def is_running(self) -> bool:
        """Neither failed nor ended by a stop id, so that the native matcher knows the mask."""
        return self._error is None and not self._ended

    def fill(self, row: Row) -> None:
        self._check()
        if self._ended:
            bitmask.set_only(row, self._stop_ids)
            return
        if not (row.flags.c_contiguous and row.dtype == np.int32 and row.size == self._num_words):
            raise ValueError(f"a mask row is int32 [{self._num_words}], contiguous")
        try:
            self._native.unsafe_compute_mask_ptr(bitmask.address(row), row.nbytes)
        except BaseException as exc:  # noqa: BLE001 - panics are no Exception; others are raised again
            if self._is_renewed(str(exc)):
                self.fill(row)
            elif not str(exc).startswith(DEAD_END):
                self._fail(exc)
        self.check_filled(row)

    def check_filled(self, row: Row) -> None:
        """Look for an error after the native mask was computed. A dead end is an empty row, not an error."""
        if self._native.is_error():
            message = self._native.get_error() or self._native.stop_reason()
            if message.startswith(DEAD_END):
                row[:] = 0
            elif self._is_renewed(message):
                self.fill(row)
            else:
                self._fail_with(message)

    def accept(self, token_id: int) -> None:
        self._check()
        if self._ended:
            self._fail_with(f"token {token_id} after the end")
        if token_id in self._stop_ids:
            if not self.is_accepting:
                self._fail_with(f"the grammar cannot end here, but stop token {token_id} came")
            self._ended = True
            return
        if self._call("is_stopped"):
            self._fail_with(f"token {token_id} after the end of the grammar")
        if not self._call("consume_token", token_id):
            self._fail_with(f"token {token_id} is not allowed: {message_of(self._native.get_error())}")
        self._accepted.append(token_id)

    def validate(self, token_ids: Sequence[int]) -> int:
        self._check()
        if self._ended:
            return 0
        text = list(token_ids)
        stop = next((i for i, token_id in enumerate(text) if token_id in self._stop_ids), None)
        if stop is None:
            return self._validate_text(text)
        num_valid = self._validate_text(text[:stop])
        return stop + 1 if num_valid == stop and self._accepting_after(text[:stop]) else num_valid

    def rollback(self, num_tokens: int) -> None:
        self._check()
        num_accepted = len(self._accepted) + self._ended
        if not 0 <= num_tokens <= num_accepted:
            raise ValueError(f"cannot undo {num_tokens} of {num_accepted} tokens")
        if num_tokens and self._ended:
            self._ended = False
            num_tokens -= 1
        if num_tokens:
            if not self._call("rollback", num_tokens):
                self._fail_with(f"rollback of {num_tokens} failed: {message_of(self._native.get_error())}")
            del self._accepted[-num_tokens:]

    def forced_tokens(self) -> list[int]:
        self._check()
        if self._ended:
            return []
        tokens: list[int] = self._call("compute_ff_tokens")
        return tokens

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        require_rows(draft, rows)
        self.fill(rows[0])
        num_valid = self._plan_behind(draft, rows) if draft and not self._ended else 0
        return DraftPlan(num_valid=num_valid, rows=rows[: num_valid + 1])

    def parallel_filler(self, threads: int) -> ParallelFiller:
        return _ParallelFiller(threads)

    def clone(self) -> LLGuidanceMatcher:
        self._check()
        native = self._call("deep_copy")
        return LLGuidanceMatcher(
            native,
            self._stop_ids,
            self._num_words,
            lexer=self._lexer,
            accepted=self._accepted,
            ended=self._ended,
        )

    def close(self) -> None:
        self._error = self._error or "closed"
        self._native = None

    def _plan_behind(self, draft: Sequence[int], rows: NDArray[np.int32]) -> int:
        """Fill the rows behind the first on a copy, which takes the errors with it."""
        probe = self.clone()
        num_valid = 0
        with contextlib.suppress(MatcherError):
            for token_id in draft:
                if probe._ended or not bitmask.is_allowed(rows[num_valid], token_id):
                    break
                probe.accept(token_id)
                probe.fill(rows[num_valid + 1])
                num_valid += 1
        probe.close()
        return num_valid

    def _validate_text(self, token_ids: list[int]) -> int:
        if not token_ids or self._call("is_stopped"):
            return 0
        return int(self._call("validate_tokens", token_ids))

    def _accepting_after(self, token_ids: list[int]) -> bool:
        if not token_ids:
            return self.is_accepting
        for token_id in token_ids:
            self.accept(token_id)
        accepting = self.is_accepting
        self.rollback(len(token_ids))
        return accepting

    def _check(self) -> None:
        if self._error is not None:
            raise MatcherError(self._error)
        if self._lexer.is_spent:
            if self._renew is None:
                self.spent_by = "others"
                self._fail_with("the lexer of this grammar is used up")
            self._take_new_lexer(self._renew)

    def _call(self, method: str, *args: object) -> Any:
        self._check()
        try:
            found = getattr(self._native, method)(*args)
        except BaseException as exc:
            if is_fatal(exc):
                raise
            if not self._is_renewed(str(exc)):
                self._fail(exc)
            return self._call(method, *args)
        if self._native.is_error() and self._is_renewed(self._native.get_error()):
            return self._call(method, *args)
        return found

    def _is_renewed(self, message: str) -> bool:
        """Whether the native matcher failed for want of a lexer, and another one has taken its place."""
        if not is_spent(message):
            return False
        self._lexer.is_spent = True
        if self._renew is None:
            self.spent_by = "itself"
            return False
        self._take_new_lexer(self._renew)
        return True

    def _take_new_lexer(self, renew: Callable[[], Any]) -> None:
        self._renew = None
        try:
            native = renew()
        except InterlockError as error:
            self._fail_with(error.message)
        if not native.consume_tokens(self._accepted):
            self._fail_with(native.get_error())
        self._native, self._lexer = native, Lexer()

    def _fail(self, exc: BaseException) -> NoReturn:
        if is_fatal(exc):
            raise exc
        self._fail_with(message_of(exc))

    def _fail_with(self, message: str) -> NoReturn:
        self._error = message_of(message)
        raise MatcherError(self._error)


class _ParallelFiller:
    def __init__(self, threads: int) -> None:
        self._executor = llguidance.LLExecutor(threads or None)

    def fill(self, jobs: Sequence[tuple[Matcher, int]], rows: NDArray[np.int32]) -> None:
        matchers = [(matcher, row) for matcher, row in jobs if isinstance(matcher, LLGuidanceMatcher)]
        running = [(matcher, row) for matcher, row in matchers if matcher.is_running]
        computed = len(running) > 1 and self._compute([(matcher.native, row) for matcher, row in running], rows)
        for matcher, row in matchers:
            with contextlib.suppress(MatcherError):  # the matcher holds it
                if computed and matcher.is_running:
                    matcher.check_filled(rows[row])
                else:
                    matcher.fill(rows[row])

    def _compute(self, pairs: list[tuple[Any, int]], rows: NDArray[np.int32]) -> bool:
        """False when the call failed as a whole: then one by one, so that only the culprit fails."""
        try:
            self._executor.unsafe_compute_mask_ptr(pairs, rows.ctypes.data, rows.strides[0], len(rows))
        except BaseException as exc:
            if is_fatal(exc):
                raise
            return False
        return True
