"""Chunks of sequences -> the arrays a runner and a sampler take."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence
from interlock.runners.base import StepBatch
from interlock.sampling.base import SamplingRow


def step_batch(chunks: Iterable[Chunk]) -> StepBatch:
    """One forward pass over ``chunks``; rows of logits in their order, for those that need them."""
    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    logits_at: list[int] = []
    for chunk in chunks:
        sequence = chunk.sequence
        assert sequence.slot is not None
        start = sequence.num_computed_tokens
        end = start + chunk.num_tokens
        token_ids += sequence.token_ids[start:end]
        positions += range(start, end)
        slots += [sequence.slot] * chunk.num_tokens
        if chunk.needs_logits:
            logits_at.append(len(token_ids) - 1)
    return StepBatch(
        token_ids=np.array(token_ids, dtype=np.int32),
        positions=np.array(positions, dtype=np.int32),
        slots=np.array(slots, dtype=np.int32),
        logits_at=np.array(logits_at, dtype=np.int32),
    )


def sampling_row(sequence: Sequence, mask: NDArray[np.int32] | None, vocab_size: int) -> SamplingRow:
    """What the sampler needs to choose the next token of ``sequence``."""
    penalties = sequence.penalties
    params, position = sequence.request.sampling, sequence.num_output_tokens
    if penalties is None:
        return SamplingRow(params=params, position=position, vocab_size=vocab_size, mask=mask)
    return SamplingRow(
        params=params,
        position=position,
        vocab_size=vocab_size,
        mask=mask,
        output_counts=penalties.output_counts,
        seen=penalties.seen,
    )
