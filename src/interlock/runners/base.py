"""The border between the engine and whatever owns the tensors.

A runner knows slots, token ids, positions and masks; no grammar, no request, no family. The engine
launches a forward pass, fills the masks while it runs, then asks for the selection:

    forward = runner.launch(batch)
    rows = forward.beside(fill_masks)
    selection = forward.select(rows)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from interlock.sampling.base import Choice, SamplingRow

IntArray = NDArray[np.int32]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerCapabilities:
    """What a runner can do beyond the minimum; the engine does without what is not there.

    partial_rollback: ``truncate`` works for any length (else only to 0).
    prefix_copy: ``copy_prefix`` works.
    saved_states: ``save_state`` and ``restore_state`` work, and cost far less than computing the tokens.
    fused_selection: selection happens on the device; logits do not reach the host.
    bit_identical: logits of a sequence do not depend on what else is in the batch or on chunking.
    """

    partial_rollback: bool = False
    prefix_copy: bool = False
    saved_states: bool = False
    fused_selection: bool = False
    bit_identical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerInfo:
    """Facts about a loaded model.

    num_logits: width of a row of logits, at least the vocabulary's size.
    num_slots: sequences that can be in the cache at once; slots are 0..num_slots-1.
    context_tokens: most tokens in one slot. max_batch_tokens: most tokens in one ``StepBatch``.
    copy_cost_tokens: a ``copy_prefix`` takes about as long as computing this many tokens of a prompt.
    max_part_tokens: a pass is computed in parts of at most this many tokens, each of neighbouring slots with equally
        many (``parts.parts``); 0 where a pass is computed at once.
    """

    name: str
    num_logits: int
    num_slots: int
    context_tokens: int
    max_batch_tokens: int
    capabilities: RunnerCapabilities
    copy_cost_tokens: int = 0
    max_part_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedState:
    """What a slot held, copied to memory of the host. Only the runner that saved it can read ``data``."""

    num_tokens: int
    num_bytes: int
    data: object


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """One forward pass. All arrays int32; token i goes to slot ``slots[i]`` at ``positions[i]``.

    Tokens of one slot are contiguous, in rising position, and continue what the slot holds.
    logits_at: indices into ``token_ids`` whose logits are wanted, rising, [num_rows].
    """

    token_ids: IntArray  # [num_tokens]
    positions: IntArray  # [num_tokens]
    slots: IntArray  # [num_tokens]
    logits_at: IntArray  # [num_rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Result of a step: for each row of ``logits_at``, the token chosen, or why none could be."""

    choices: tuple[Choice, ...]


class ForwardError(Exception):
    """A forward pass failed. The slots named in the batch must be cleared or replayed before reuse."""


class Forward(Protocol):
    """A forward pass in flight. ``select`` is called exactly once, or ``discard`` is."""

    def beside(self, work: Callable[[], T]) -> T:
        """What ``work`` gives, or raises, called while the pass runs; on any thread. At most once, before the end. That the pass
        failed is told at the end."""
        ...

    def select(self, rows: Sequence[SamplingRow]) -> Selection:
        """Wait for the pass, then choose a token for each row (``len(rows) == len(batch.logits_at)``).
        A row that cannot be sampled gives a ``Choice`` with ``error`` set and harms no other row.
        Raises ``ForwardError`` when the pass itself failed."""
        ...

    def discard(self) -> None:
        """Wait for the pass and drop its logits. Raises ``ForwardError`` as ``select`` does."""
        ...


class ModelRunner(Protocol):
    """Owns weights and KV cache. Called from one thread only. ``launch`` returns at once; the pass runs on the device, or in
    the calls of its ``Forward``. At most one pass is in flight; no slot operation meanwhile."""

    @property
    def info(self) -> RunnerInfo: ...

    def launch(self, batch: StepBatch) -> Forward:
        """Start a forward pass. Raises ``ValueError`` for a batch that breaks the rules above."""
        ...

    def truncate(self, slot: int, num_tokens: int) -> None:
        """Keep the first ``num_tokens`` of a slot's cache. 0 clears it and always works."""
        ...

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        """Make ``target`` hold the first ``num_tokens`` of ``source``. Needs ``prefix_copy``."""
        ...

    def state_bytes(self, slot: int) -> int:
        """What ``save_state`` of this slot would take. Needs ``saved_states``."""
        ...

    def save_state(self, slot: int) -> SavedState | None:
        """A copy of what the slot holds, ``None`` where there is no memory for it. Needs ``saved_states``."""
        ...

    def restore_state(self, slot: int, state: SavedState, num_tokens: int) -> bool:
        """Make ``slot`` hold the first ``num_tokens`` of ``state``, with the very logits that follow from them. False,
        and the slot is empty, where that fails. Needs ``saved_states``."""
        ...

    def close(self) -> None:
        """Free everything. Idempotent."""
        ...
