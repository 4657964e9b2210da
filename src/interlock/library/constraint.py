"""A constraint compiled for one vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.constraints.providers.base import CompiledGrammar, Matcher
from interlock.constraints.state import ConstraintState
from interlock.core.engine import ThinkingBudget
from interlock.core.tokenizer import Vocabulary
from interlock.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """Immutable; any number of sequences may follow it, in any threads.

    notes: what its report says that a caller should know. unenforced: what relaxed schemas leave out.
    thinking: the budget of the turn that it is for, if there is one.
    """

    grammar: CompiledGrammar
    vocabulary: Vocabulary
    notes: tuple[str, ...] = ()
    unenforced: tuple[Problem, ...] = ()
    thinking: ThinkingBudget | None = None

    def matcher(self) -> Matcher:
        """A matcher at the start of one sequence."""
        return self.grammar.matcher()

    def state(self) -> ConstraintState:
        """The start of one sequence, thinking budget included."""
        return ConstraintState(self.matcher(), thinking=self.thinking)
