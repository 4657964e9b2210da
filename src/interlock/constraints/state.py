"""The constraint of one sequence while it is generated."""

from __future__ import annotations

from interlock.constraints import bitmask
from interlock.constraints.providers.base import Matcher, Row
from interlock.constraints.thinking import ThinkingProgress
from interlock.core.engine import ThinkingBudget


class ConstraintState:
    """A matcher, a thinking budget, or both.

    Once the matcher has failed, ``error`` says why and every method but ``close`` raises ``MatcherError``.
    At the end of the thinking budget the closing ids are the only ones allowed, one by one; where the grammar
    cannot take one (inside a character of several tokens) it decides, and the budget waits for the next token.
    """

    def __init__(self, matcher: Matcher | None, *, thinking: ThinkingBudget | None = None) -> None:
        self._matcher = matcher
        self._thinking = None if thinking is None else ThinkingProgress.start(thinking)

    @property
    def matcher(self) -> Matcher | None:
        """The grammar's matcher, if there is a grammar."""
        return self._matcher

    @property
    def error(self) -> str | None:
        """Why the matcher failed, or ``None``."""
        return None if self._matcher is None else self._matcher.error

    @property
    def is_accepting(self) -> bool:
        """The output may end here."""
        return self._matcher is None or self._matcher.is_accepting

    @property
    def is_terminated(self) -> bool:
        """Nothing but a stop id can follow."""
        return self._matcher is not None and self._matcher.is_terminated

    def forced_id(self) -> int | None:
        """The closing id that the thinking budget demands next."""
        forced = None if self._thinking is None else self._thinking.forced_id
        if forced is None or self._matcher is None:
            return forced
        return forced if self._matcher.validate([forced]) == 1 else None

    def fill(self, row: Row) -> None:
        """Write the mask of legal next tokens into ``row``. Only where there is a matcher or a forced id."""
        forced = self.forced_id()
        if forced is not None:
            bitmask.set_only(row, (forced,))
        elif self._matcher is not None:
            self._matcher.fill(row)

    def accept(self, token_id: int) -> None:
        """Advance by one token."""
        if self._matcher is not None:
            self._matcher.accept(token_id)
        if self._thinking is not None:
            self._thinking = self._thinking.after(token_id)

    def close(self) -> None:
        """Free native memory. Idempotent."""
        if self._matcher is not None:
            self._matcher.close()
