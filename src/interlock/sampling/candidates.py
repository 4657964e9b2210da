"""From a row of logits to the candidates of a selection: bias, penalties, mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interlock.constraints.bitmask import Mask, num_words, unpack
from interlock.core.sampling import SamplingParams
from interlock.sampling.base import SamplingRow

Logits = NDArray[np.float32]

# The bits of each byte of a mask, lowest first, as ceilings of logits: [256, 8].
_CEILINGS_OF_BYTE: Logits = np.where(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"), np.inf, -np.inf
).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Logits to choose from, in ascending order of id.

    values: float32 [n]; -inf is never chosen.
    ids: id of each value, int64 [n]; ``None`` where the index is the id.
    """

    values: Logits
    ids: NDArray[np.int64] | None = None

    def id_at(self, index: int) -> int:
        return index if self.ids is None else int(self.ids[index])


def adjusted(logits: Logits, row: SamplingRow) -> Logits:
    """The row's logits below ``vocab_size`` after bias and penalties, before the mask.

    A view of ``logits`` where nothing applies, else a copy: the caller's row is never written to.
    Raises ``ValueError`` where the logits are narrower than the vocabulary.
    """
    if logits.size < row.vocab_size:
        raise ValueError(f"{logits.size} logits for a vocabulary of {row.vocab_size}")
    values = logits[: row.vocab_size]
    params = row.params
    if params.logit_bias or params.repetition_penalty != 1.0 or _counts_matter(row):
        values = values.copy()
        _add_bias(values, params)
        _penalise_repetition(values, row)
        _penalise_counts(values, row)
    return values


def masked(values: Logits, mask: Mask | None) -> Candidates:
    """The values that ``mask`` allows. Raises ``ValueError`` for a mask of another vocabulary."""
    if mask is None:
        return Candidates(values)
    if mask.size != num_words(values.size):
        raise ValueError(f"mask of {mask.size} words for a vocabulary of {values.size}")
    allowed = unpack(mask, values.size)
    # A list of indices costs as much as the logits themselves, so only a short one is made.
    if 2 * np.count_nonzero(allowed) > values.size:
        # The smaller of the two, and of NaN and a number the number.
        return Candidates(np.fmin(values, _ceilings(mask, values.size)))
    ids = np.flatnonzero(allowed)
    return Candidates(values[ids], ids)


def _ceilings(mask: Mask, size: int) -> Logits:
    """+inf for each id that ``mask`` allows, else -inf, float32 [size]."""
    return np.take(_CEILINGS_OF_BYTE, mask.view(np.uint8), axis=0).reshape(-1)[:size]


def _counts_matter(row: SamplingRow) -> bool:
    params = row.params
    return bool(row.output_counts) and (params.frequency_penalty != 0.0 or params.presence_penalty != 0.0)


def _add_bias(values: Logits, params: SamplingParams) -> None:
    for token_id, bias in params.logit_bias:
        if 0 <= token_id < values.size:
            values[token_id] += np.float32(bias)


def _penalise_repetition(values: Logits, row: SamplingRow) -> None:
    """Logits of ids seen: divided by the penalty where positive, multiplied where negative (CTRL)."""
    penalty = np.float32(row.params.repetition_penalty)
    if penalty == 1.0 or row.seen is None:
        return
    seen = row.seen[row.seen < values.size]
    before = values[seen]
    values[seen] = np.where(before > 0, before / penalty, before * penalty)


def _penalise_counts(values: Logits, row: SamplingRow) -> None:
    """OpenAI's definition: logit - count * frequency_penalty - (count > 0) * presence_penalty."""
    if not _counts_matter(row):
        return
    ids = np.fromiter(row.output_counts.keys(), dtype=np.int64, count=len(row.output_counts))
    counts = np.fromiter(row.output_counts.values(), dtype=np.float32, count=len(row.output_counts))
    known = (ids < values.size) & (counts > 0)
    ids, counts = ids[known], counts[known]
    params = row.params
    values[ids] -= counts * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
