"""Going back from where guards leave no token: text that nobody has been told is taken back."""

from __future__ import annotations

from interlock.engine.scheduler import Scheduler
from interlock.engine.sequence import Sequence

MOST_BACKTRACKS = 64
"""Times for one sequence; then it ends."""


def has_gone_back(sequence: Sequence, scheduler: Scheduler) -> bool:
    """Whether a running sequence whose guard is at a dead end stands where another way goes on, without the tokens behind."""
    constraint = sequence.constraint
    if sequence.fault is not None or constraint is None or constraint.error is None:
        return False
    if sequence.num_backtracks >= MOST_BACKTRACKS:
        return False
    num_tokens = constraint.backtrack(len(sequence.held))
    if not num_tokens:
        return False
    sequence.num_backtracks += 1
    sequence.drop(num_tokens)
    sequence.num_new_tokens = 1
    scheduler.step_back(sequence)
    return True
