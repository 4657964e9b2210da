"""A ``StepBatch`` as the arrays of a forward pass: as it is, or as a grid of one shape with padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interlock.runners.base import StepBatch
from interlock.runners.slots import Run

_SHORTEST = 256
_WASTE = 2
"""A grid reads as much of each slot as of the fullest one; up to this factor that beats one call for each slot."""

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPass:
    """What goes to the device, int64.

    token_ids, positions, slots: [tokens], padding included. logits_at: [rows of logits], padding included, indices into
    these. rows, width, length, row_slots [rows]: of a grid; rows is 0 where it is none.
    """

    token_ids: Int64
    positions: Int64
    slots: Int64
    logits_at: Int64
    row_slots: Int64
    rows: int = 0
    width: int = 0
    length: int = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """What two passes must share to be run by one graph."""
        return self.rows, self.width, self.length, len(self.logits_at)


def pack_as_is(batch: StepBatch, runs: Sequence[Run]) -> PackedPass:
    """No padding. A grid where all runs are of one length and their slots about equally full."""
    lengths = batch.positions[[run.end - 1 for run in runs]] + 1
    widths = {run.end - run.start for run in runs}
    is_grid = len(widths) == 1 and len(runs) * int(lengths.max()) <= _WASTE * int(lengths.sum())
    is_grid = is_grid and max(widths) <= len(runs)
    return PackedPass(
        token_ids=batch.token_ids.astype(np.int64),
        positions=batch.positions.astype(np.int64),
        slots=batch.slots.astype(np.int64),
        logits_at=batch.logits_at.astype(np.int64),
        row_slots=np.array([run.slot for run in runs], dtype=np.int64),
        rows=len(runs) if is_grid else 0,
        width=max(widths),
        length=int(lengths.max()),
    )


def pack_grid(
    batch: StepBatch, runs: Sequence[Run], *, max_width: int, context_tokens: int, padding_slot: int
) -> PackedPass | None:
    """A grid of one of few shapes; ``None`` where a run is longer than ``max_width``.

    Width is 1 or ``max_width``, everything else a power of two. Padding stands at position 0 of the padding slot.
    """
    longest = max(run.end - run.start for run in runs)
    if longest > max_width:
        return None
    width = 1 if longest == 1 else max_width
    rows = power_of_two(len(runs))
    places = np.concatenate(
        [np.arange(run.end - run.start) + row * width for row, run in enumerate(runs)], dtype=np.int64
    )
    row_slots = np.full(rows, padding_slot, dtype=np.int64)
    row_slots[: len(runs)] = [run.slot for run in runs]
    logits_at = np.zeros(power_of_two(len(batch.logits_at)) if len(batch.logits_at) else 0, dtype=np.int64)
    logits_at[: len(batch.logits_at)] = places[batch.logits_at]
    length = max(_SHORTEST, power_of_two(int(batch.positions.max()) + 1))
    return PackedPass(
        token_ids=_scattered(batch.token_ids, places, rows * width, 0),
        positions=_scattered(batch.positions, places, rows * width, 0),
        slots=_scattered(batch.slots, places, rows * width, padding_slot),
        logits_at=logits_at,
        row_slots=row_slots,
        rows=rows,
        width=width,
        length=min(length, context_tokens),
    )


def power_of_two(count: int) -> int:
    """The smallest one that is at least ``count`` and 1."""
    return 1 << max(0, count - 1).bit_length()


def _scattered(values: NDArray[np.int32], places: Int64, size: int, padding: int) -> Int64:
    result = np.full(size, padding, dtype=np.int64)
    result[places] = values
    return result
