"""How far a turn's thinking has come, and when it must be closed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from interlock.core.engine import ThinkingBudget

_Phase = Literal["opening", "thinking", "reopening", "over"]


@dataclass(frozen=True, slots=True)
class ThinkingProgress:
    """Immutable; ``after`` gives the next one.

    num_matched: length of the prefix of the ids awaited in this phase that the output ends with.
    """

    budget: ThinkingBudget
    phase: _Phase
    num_matched: int = 0
    num_tokens: int = 0

    @staticmethod
    def start(budget: ThinkingBudget) -> ThinkingProgress:
        """Before the first token."""
        return ThinkingProgress(budget, "opening" if budget.open_ids else "thinking")

    @property
    def forced_id(self) -> int | None:
        """The id that must come next, because the budget is used up."""
        if self.phase != "thinking" or self.num_tokens < self.budget.max_tokens:
            return None
        return self.budget.close_ids[self.num_matched]

    @property
    def is_over(self) -> bool:
        """Nothing will be forced any more."""
        return self.phase == "over"

    def after(self, token_id: int) -> ThinkingProgress:
        """Progress once ``token_id`` was generated."""
        if self.phase == "over":
            return self
        if self.phase == "opening":
            return self._after_opening(token_id, self.budget.open_ids)
        if self.phase == "reopening":
            return self._after_opening(token_id, self.budget.reopen_ids)
        if token_id in self.budget.end_ids:
            return replace(self, phase="over")
        matched = self._close_matched(token_id)
        if matched < len(self.budget.close_ids):
            return replace(self, num_matched=matched, num_tokens=self.num_tokens + 1)
        phase: _Phase = "reopening" if self.budget.reopen_ids else "over"
        return replace(self, phase=phase, num_matched=0, num_tokens=self.num_tokens + 1)

    def _after_opening(self, token_id: int, open_ids: tuple[int, ...]) -> ThinkingProgress:
        if open_ids[self.num_matched] != token_id:
            return replace(self, phase="over")
        if self.num_matched + 1 == len(open_ids):
            return replace(self, phase="thinking", num_matched=0)
        return replace(self, num_matched=self.num_matched + 1)

    def _close_matched(self, token_id: int) -> int:
        close_ids = self.budget.close_ids
        tail = (*close_ids[: self.num_matched], token_id)
        return next(
            length for length in range(len(tail), -1, -1) if tail[len(tail) - length :] == close_ids[:length]
        )
