"""What a sampler is given for one row of logits, and what it answers: structs, as there is one of each for each token."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from interlock.core.engine import TokenLogprob
from interlock.core.sampling import SamplingParams
from interlock.core.trace import TokenTrace


class SamplingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of logits to choose from.

    position: index of the output token being chosen (0 for the first); randomness is keyed by
        (params.seed, position).
    vocab_size: ids at or above it are never chosen.
    mask: int32 [ceil(vocab_size/32)], bit 1 = allowed, tail bits zero; ``None`` allows every id below
        ``vocab_size``.
    output_counts: id -> times generated so far (frequency and presence penalty).
    draft: the id that stands behind this row in the batch as a guess; the next row is looked at only if this id is
        chosen. ``None``: there is none.
    target: an id that is not to be chosen but scored: a token of the prompt. ``Choice.logprob`` is then its log probability
        under the bare logits, with ``params.logprobs`` alternatives; nothing else of ``params`` counts.
    trace: fill ``Choice.trace``.
    seen: ids in prompt or output (repetition penalty), int32 [n], no duplicates; ``None`` if not needed.
    """

    params: SamplingParams
    position: int
    vocab_size: int
    mask: NDArray[np.int32] | None = None
    output_counts: Mapping[int, int] = msgspec.field(default_factory=dict)
    seen: NDArray[np.int32] | None = None
    draft: int | None = None
    target: int | None = None
    trace: bool = False


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The token chosen for a row. ``error`` is a code of ``errors.CATALOG`` (``no_token_allowed``,
    ``sampling_failed``) when none could be chosen; ``token_id`` is then -1. It is also -1, without an error, for a
    row behind a draft that was not chosen."""

    token_id: int
    logprob: TokenLogprob | None = None
    trace: TokenTrace | None = None
    error: str | None = None
