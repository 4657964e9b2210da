"""The constraint of one sequence while it is generated."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from interlock import log
from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.constraints.closing import Closing
from interlock.constraints.providers.base import Matcher, MatcherError, Row, SpentBy
from interlock.constraints.thinking import ThinkingProgress
from interlock.core.engine import ThinkingBudget

Answer = TypeVar("Answer")

_log = log.get(__name__)


class ConstraintState:
    """A matcher, a thinking budget, or both. closing: how it ends where the token budget does, for one with a matcher.

    Once the matcher has failed, ``error`` says why and every method but ``close`` raises ``MatcherError``.
    At the end of the thinking budget the closing ids are the only ones allowed, one by one; where the grammar
    cannot take one (inside a character of several tokens) it decides, and the budget waits for the next token.

    Whatever a matcher raises is a failure of this one sequence: guards are our own code and may have faults.
    """

    def __init__(
        self,
        matcher: Matcher | None,
        *,
        thinking: ThinkingBudget | None = None,
        closing: Closing | None = None,
    ) -> None:
        self._matcher = matcher
        self._closing = closing
        self._fault: str | None = None
        self._thinking = None if thinking is None else ThinkingProgress.start(thinking)

    @property
    def matcher(self) -> Matcher | None:
        """The grammar's matcher, if there is a grammar."""
        return self._matcher

    @property
    def error(self) -> str | None:
        """Why the matcher failed, or ``None``."""
        return self._fault or (None if self._matcher is None else self._matcher.error)

    @property
    def spent_by(self) -> SpentBy | None:
        """See ``Matcher``."""
        return None if self._matcher is None or self._fault is not None else self._matcher.spent_by

    @property
    def num_vetoed(self) -> int:
        """See ``Matcher``."""
        return 0 if self._matcher is None else self._matcher.num_vetoed

    @property
    def num_held(self) -> int:
        """See ``Matcher``."""
        return 0 if self._matcher is None or self._fault is not None else self._matcher.num_held

    def backtrack(self, limit: int) -> int:
        """See ``Matcher``; 0 too where it fails at that."""
        if self._matcher is None or self._fault is not None or limit <= 0:
            return 0
        if self._thinking is not None and not self._thinking.is_over:
            return 0  # its count would have to go back as well
        with contextlib.suppress(MatcherError):
            num_tokens = self._ask(lambda matcher: matcher.backtrack(limit))
            if self._closing is not None:
                self._closing.took_back(num_tokens)
            return num_tokens
        return 0

    @property
    def is_accepting(self) -> bool:
        """The output may end here."""
        return self._matcher is None or self._ask(lambda matcher: matcher.is_accepting)

    @property
    def is_terminated(self) -> bool:
        """Nothing but a stop id can follow."""
        return self._matcher is not None and self._ask(lambda matcher: matcher.is_terminated)

    @property
    def is_closed(self) -> bool:
        """The output has been brought to its end, since its budget was used up."""
        return self._closing is not None and self._closing.is_closed

    def refuses(self, token_id: int) -> bool | None:
        """Whether the budget leaves no room for ``token_id`` and an end behind it; then ``ending_ids`` are the end. To be
        asked before each ``accept``; ``None``: again, about the same token, when ``search`` is done."""
        closing = self._closing
        return closing is not None and self._ask(lambda matcher: closing.refuses(matcher, token_id))

    @property
    def search(self) -> Future[Any] | None:
        """Runs beside the step; the sequence can say nothing before it is done. ``None`` where there is none."""
        return None if self._closing is None else self._closing.search

    @property
    def ending_ids(self) -> tuple[int, ...]:
        """After ``refuses``: what brings the output to its end."""
        return () if self._closing is None else self._closing.ending_ids

    def close_output(self, *, by_ending: bool) -> None:
        """After ``refuses``: force ``ending_ids``, or let the output be cut off."""
        assert self._closing is not None
        if by_ending:
            self._closing.begin()
        else:
            self._closing.give_up()

    def replay(self, token_ids: Iterable[int]) -> None:
        """Advance by what has been said already."""
        for token_id in token_ids:
            closing = self._closing
            if closing is not None:
                self._ask(lambda matcher: closing.replayed(matcher, token_id))  # noqa: B023 - called at once
            self.accept(token_id)

    def forced_id(self) -> int | None:
        """The next id of an ending that has begun, or the closing id that the thinking budget demands."""
        if self._closing is not None and self._closing.has_begun:
            return self._closing.next_id
        forced = None if self._thinking is None else self._thinking.forced_id
        if forced is None or self._matcher is None:
            return forced
        return forced if self._ask(lambda matcher: matcher.validate([forced])) == 1 else None

    def forced_token(self) -> int | None:
        """The only id that can follow, canonical where several spell the same; ``None`` where there is a choice or the
        output may end. It is the one that the mask would leave."""
        forced = self.forced_id()
        if forced is not None or self._matcher is None:
            return forced
        run = self._ask(lambda matcher: matcher.forced_tokens())
        return run[0] if run else None

    def fill(self, row: Row) -> None:
        """Write the mask of legal next tokens into ``row``. Only where there is a matcher or a forced id."""
        forced = self.forced_id()
        if forced is not None:
            bitmask.set_only(row, (forced,))
        elif self._matcher is not None:
            self._ask(lambda matcher: matcher.fill(row))

    def fill_if_any(self, row: Row) -> bool:
        """``fill`` where there is something to forbid; else ``row`` is left alone, and every id is allowed."""
        if self._matcher is None and self.forced_id() is None:
            return False
        self.fill(row)
        return True

    def accept(self, token_id: int) -> None:
        """Advance by one token."""
        if self._matcher is not None:
            self._ask(lambda matcher: matcher.accept(token_id))
        if self._thinking is not None:
            self._thinking = self._thinking.after(token_id)
        if self._closing is not None:
            self._closing.took(token_id)

    def accepts(self, token_id: int) -> bool:
        """Whether ``token_id`` may follow."""
        forced = self.forced_id()
        if forced is not None:
            return forced == token_id
        return self._matcher is None or self._ask(lambda matcher: matcher.validate([token_id])) == 1

    def clone(self) -> ConstraintState:
        """An independent state at the same place."""
        twin = ConstraintState(None if self._matcher is None else self._ask(lambda matcher: matcher.clone()))
        twin._thinking = self._thinking
        twin._closing = None if self._closing is None else self._closing.forked()
        return twin

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> list[Mask | None]:
        """The masks before each token of the longest legal prefix of ``draft`` and after it: rows of ``rows``, which is
        int32 [at least len(draft) + 1, ceil(vocab/32)]; ``None`` where every id is allowed. State is unchanged.

        A draft harms nobody: it ends where a mask cannot be computed; only the first one raises ``MatcherError``.
        """
        if self._matcher is not None and self._only_matcher_decides:
            return list(self._ask(lambda matcher: matcher.plan(draft, rows)).rows)
        masks = [rows[0] if self.fill_if_any(rows[0]) else None]
        if draft:
            probe = self.clone()
            with contextlib.suppress(MatcherError):
                for token_id, row in zip(draft, rows[1:], strict=False):
                    if not probe.accepts(token_id):
                        break
                    probe.accept(token_id)
                    masks.append(row if probe.fill_if_any(row) else None)
            probe.close()
        return masks

    @property
    def _only_matcher_decides(self) -> bool:
        is_thinking = self._thinking is not None and not self._thinking.is_over
        return not is_thinking and (self._closing is None or not self._closing.has_begun)

    def close(self) -> None:
        """Free native memory. Idempotent, raises nothing."""
        if self._matcher is None:
            return
        try:
            self._matcher.close()
        except Exception:  # noqa: BLE001 - the edge of a request: it has ended, and others go on
            _log.exception("a matcher could not be closed")

    def _ask(self, question: Callable[[Matcher], Answer]) -> Answer:
        """What the matcher says. Raises ``MatcherError``, now and from then on, for whatever goes wrong."""
        assert self._matcher is not None
        if self._fault is not None:
            raise MatcherError(self._fault)
        try:
            return question(self._matcher)
        except MatcherError:
            raise
        except Exception as error:  # the edge of a request: its matcher harms no other
            _log.exception("a matcher failed unexpectedly; its request ends")
            self._fault = f"{type(error).__name__}: {error}"
            raise MatcherError(self._fault) from error
