"""What each slot of a cache holds, and the rules that a batch keeps. Shared by all runners."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from interlock.runners.base import IntArray, StepBatch


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens ``start`` up to ``end`` (half open) of a batch, all of one slot."""

    slot: int
    start: int
    end: int


class SlotTable:
    """Tokens held per slot. Every change of a cache goes through here, so that a runner refuses what would
    silently give other logits than asked for."""

    def __init__(self, *, num_slots: int, context_tokens: int, max_batch_tokens: int, num_logits: int) -> None:
        self._lengths = [0] * num_slots
        self._context_tokens = context_tokens
        self._max_batch_tokens = max_batch_tokens
        self._num_logits = num_logits

    def length(self, slot: int) -> int:
        """Tokens in ``slot``. Raises ``ValueError`` for a slot that is not there."""
        if not 0 <= slot < len(self._lengths):
            raise ValueError(f"slot {slot} of {len(self._lengths)}")
        return self._lengths[slot]

    def check(self, batch: StepBatch) -> list[Run]:
        """The batch as runs of one slot each. Raises ``ValueError`` for a batch that breaks a rule."""
        num_tokens = len(batch.token_ids)
        if not 0 < num_tokens <= self._max_batch_tokens:
            raise ValueError(f"{num_tokens} tokens in a batch of 1 to {self._max_batch_tokens}")
        if not num_tokens == len(batch.positions) == len(batch.slots):
            raise ValueError("token_ids, positions and slots differ in length")
        if int(batch.token_ids.min()) < 0 or int(batch.token_ids.max()) >= self._num_logits:
            raise ValueError(f"a token id outside 0 to {self._num_logits - 1}")
        _check_rows(batch.logits_at, num_tokens)
        runs = _runs(batch.slots.tolist())
        if len({run.slot for run in runs}) != len(runs):
            raise ValueError("tokens of one slot are not contiguous")
        positions = batch.positions.tolist()
        for run in runs:
            self._check_positions(run, positions[run.start : run.end])
        return runs

    def advance(self, runs: list[Run]) -> None:
        """The tokens of a checked batch are in the cache."""
        for run in runs:
            self._lengths[run.slot] += run.end - run.start

    def truncate(self, slot: int, num_tokens: int) -> None:
        """Raises ``ValueError`` where the slot does not hold that many."""
        if not 0 <= num_tokens <= self.length(slot):
            raise ValueError(f"slot {slot} holds {self.length(slot)} tokens, not {num_tokens}")
        self._lengths[slot] = num_tokens

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        """Raises ``ValueError`` where the source does not hold that many, or is the target."""
        if source == target:
            raise ValueError(f"slot {source} copied onto itself")
        if not 0 <= num_tokens <= self.length(source):
            raise ValueError(f"slot {source} holds {self.length(source)} tokens, not {num_tokens}")
        self.length(target)
        self._lengths[target] = num_tokens

    def restore(self, slot: int, num_saved: int, num_tokens: int) -> None:
        """``slot`` holds the first ``num_tokens`` of a saved state. Raises ``ValueError`` where that has fewer."""
        self.length(slot)
        if not 0 <= num_tokens <= num_saved <= self._context_tokens:
            raise ValueError(
                f"{num_tokens} tokens of a state of {num_saved}, in a context of {self._context_tokens}"
            )
        self._lengths[slot] = num_tokens

    def _check_positions(self, run: Run, positions: list[int]) -> None:
        held = self.length(run.slot)
        if positions != list(range(held, held + len(positions))):
            raise ValueError(
                f"slot {run.slot} holds {held} tokens; positions from {positions[0]} do not continue it"
            )
        if positions[-1] >= self._context_tokens:
            raise ValueError(f"slot {run.slot} would exceed its context of {self._context_tokens} tokens")


def _check_rows(logits_at: IntArray, num_tokens: int) -> None:
    rows = logits_at.tolist()
    if any(second <= first for first, second in pairwise(rows)):
        raise ValueError("logits_at does not rise")
    if rows and not (rows[0] >= 0 and rows[-1] < num_tokens):
        raise ValueError("logits_at is outside the batch")


def _runs(slots: list[int]) -> list[Run]:
    runs, start = [], 0
    for end in range(1, len(slots) + 1):
        if end == len(slots) or slots[end] != slots[start]:
            runs.append(Run(slots[start], start, end))
            start = end
    return runs
