"""Logit bias and penalties on the device: few numbers are sent, no logits come back. The reference is ``adjusted`` in
``sampling/candidates.py``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from interlock.runners.torch.arena import Arena, HostArray
from interlock.sampling.base import SamplingRow


@dataclass(slots=True)
class _Cells:
    """Some logits, by row and id, and a number for each of them."""

    rows: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    def add(self, row: int, ids: Sequence[int], numbers: Iterable[float]) -> None:
        self.rows += [row] * len(ids)
        self.ids += ids
        self.numbers += numbers

    def arrays(self) -> tuple[HostArray, HostArray, HostArray]:
        rows, ids = np.array(self.rows, dtype=np.int64), np.array(self.ids, dtype=np.int64)
        return rows, ids, np.array(self.numbers, dtype=np.float64)


def adjustments(rows: Sequence[SamplingRow], chosen: Iterable[int]) -> list[HostArray]:
    """What ``adjust`` needs for the rows numbered ``chosen``; empty where nothing applies."""
    biased, seen, counted = _Cells(), _Cells(), _Cells()
    for index in chosen:
        row, params = rows[index], rows[index].params
        bias = [(one, value) for one, value in params.logit_bias if 0 <= one < row.vocab_size]
        biased.add(index, [one for one, _ in bias], [value for _, value in bias])
        if params.repetition_penalty != 1.0 and row.seen is not None:
            ids = row.seen[row.seen < row.vocab_size].tolist()
            seen.add(index, ids, [params.repetition_penalty] * len(ids))
        frequency, presence = np.float32(params.frequency_penalty), np.float32(params.presence_penalty)
        if row.output_counts and (frequency or presence):
            known = [(one, n) for one, n in row.output_counts.items() if one < row.vocab_size and n > 0]
            counted.add(
                index,
                [one for one, _ in known],
                [float(np.float32(n) * frequency + presence) for _, n in known],
            )
    if not (biased.rows or seen.rows or counted.rows):
        return []
    return [*biased.arrays(), *seen.arrays(), *counted.arrays()]


def adjust(logits: torch.Tensor, arrays: Sequence[HostArray]) -> None:
    """Bias, then repetition penalty, then frequency and presence, in float32 as the reference."""
    tensors = Arena(arrays, logits.device).tensors
    rows, ids, bias = tensors[:3]
    logits.index_put_((rows, ids), bias.float(), accumulate=True)
    rows, ids, penalty = tensors[3:6]
    before, factor = logits[rows, ids], penalty.float()
    logits[rows, ids] = torch.where(before > 0, before / factor, before * factor)
    rows, ids, amount = tensors[6:9]
    logits[rows, ids] -= amount.float()
