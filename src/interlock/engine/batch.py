"""Chunks of sequences and the drafts behind them -> the arrays a runner and a sampler take."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from interlock.core.sampling import SamplingParams
from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence
from interlock.runners.base import StepBatch
from interlock.sampling.base import SamplingRow

Draft = Seq[int]
_NEVER = -1  # a draft that no choice equals


def step_batch(chunks: Seq[Chunk], drafts: Seq[Draft]) -> StepBatch:
    """One forward pass over ``chunks``, each with its draft behind it. A chunk gets a row for each position that is
    ``scored``, and where it needs logits one for its last token and one for each token of its draft, in their order."""
    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    logits_at: list[int] = []
    for chunk, draft in zip(chunks, drafts, strict=True):
        sequence = chunk.sequence
        start = sequence.num_computed_tokens
        end = start + chunk.num_tokens
        logits_at += [len(token_ids) + position - start for position in chunk.scored]
        token_ids += sequence.token_ids[start:end]
        if chunk.needs_logits:
            first = len(token_ids) - 1
            logits_at += range(first, first + 1 + len(draft))
            token_ids += draft
        num_tokens = chunk.num_tokens + len(draft)
        positions += range(start, start + num_tokens)
        slots += [chunk.slot] * num_tokens
    return StepBatch(
        token_ids=np.array(token_ids, dtype=np.int32),
        positions=np.array(positions, dtype=np.int32),
        slots=np.array(slots, dtype=np.int32),
        logits_at=np.array(logits_at, dtype=np.int32),
    )


def score_rows(sequence: Sequence, positions: range, vocab_size: int) -> list[SamplingRow]:
    """What the sampler needs to score the tokens of the prompt behind ``positions``."""
    if not positions:
        return []
    params = SamplingParams(logprobs=sequence.request.sampling.prompt_logprobs)
    return [
        SamplingRow(params=params, position=0, vocab_size=vocab_size, target=sequence.token_ids[position + 1])
        for position in positions
    ]


def sampling_rows(
    sequence: Sequence, draft: Draft, masks: Seq[NDArray[np.int32] | None], vocab_size: int
) -> list[SamplingRow]:
    """What the sampler needs to choose the token after the last one of ``sequence``, and after each of ``draft``.
    Where there are fewer masks than that, the rows behind them are never reached."""
    if len(draft) == 0:
        return [_row(sequence, (), masks[0], None, vocab_size)]
    num_usable = len(masks) - 1
    behind = [*draft[:num_usable], *[_NEVER] * (len(draft) - num_usable), None]
    return [
        _row(sequence, draft[:index], masks[min(index, num_usable)], following, vocab_size)
        for index, following in enumerate(behind)
    ]


def _row(
    sequence: Sequence, before: Draft, mask: NDArray[np.int32] | None, following: int | None, vocab_size: int
) -> SamplingRow:
    """The row behind the draft tokens ``before``."""
    params, position = sequence.request.sampling, sequence.num_output_tokens + len(before)
    limiter = sequence.limiter
    if limiter is not None:
        tail = (*sequence.output_tail(limiter.tail_length), *before)
        mask = limiter.applied(mask, tail, position, vocab_size)
    penalties = sequence.penalties
    if penalties is None:
        return SamplingRow(
            params=params,
            position=position,
            vocab_size=vocab_size,
            mask=mask,
            draft=following,
            trace=sequence.request.trace,
        )
    if before:
        penalties = penalties.after(before)
    return SamplingRow(
        params=params,
        position=position,
        vocab_size=vocab_size,
        mask=mask,
        draft=following,
        output_counts=penalties.output_counts,
        seen=penalties.seen,
        trace=sequence.request.trace,
    )
