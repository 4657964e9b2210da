"""Choose one token from a row of logits.

The order is fixed:

1. logit bias, repetition penalty, frequency and presence penalty;
2. the mask: from here on only allowed ids exist, so no bias can lift a forbidden one;
3. temperature 0: the largest logit, ties to the lowest id. Else temperature, top-k, top-p, min-p, typical-p, and the
   inverse CDF over the surviving candidates in ascending order of id, with the one uniform number of
   ``(seed, position)``.

The choice is a pure function of the row: the same logits, mask and parameters give the same token whatever else
is in the batch. Logits are float32, masses are summed in float64.

Errors, per row: ``no_token_allowed`` where the mask allows nothing or only logits of -inf; ``sampling_failed``
where an allowed logit is NaN or +inf, or where without a mask all are -inf.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from interlock import log
from interlock.constraints.bitmask import is_allowed
from interlock.core.sampling import SamplingParams
from interlock.sampling.base import Choice, SamplingRow
from interlock.sampling.candidates import Candidates, Logits, adjusted, masked
from interlock.sampling.logprobs import target_logprob, token_logprob
from interlock.sampling.random import uniform
from interlock.sampling.trace import token_trace
from interlock.sampling.truncation import preselected, truncated

_log = log.get(__name__)

# Below this, differences that float32 logits can show are decided anyway, and 1/temperature stays finite.
GREEDY_BELOW = 1e-5
UNREACHED = Choice(token_id=-1)
_BLOCK = 256


def select(logits: Logits, row: SamplingRow) -> Choice:
    """Choose a token. ``logits``: float32 [num_logits], read only.

    Raises ``ValueError`` where logits, vocabulary and mask do not fit together.
    """
    if row.target is not None:
        return _scored(logits, row, row.target)
    values = adjusted(logits, row)
    greedy = row.params.temperature < GREEDY_BELOW
    if greedy and row.params.logprobs is None and not row.trace:
        best = _unmasked_argmax(values, row)
        if best is not None:
            return Choice(token_id=best)
    candidates = masked(values, row.mask)
    top = candidates.values.max(initial=-np.inf)
    error = _unusable(top, is_masked=row.mask is not None)
    if error is not None:
        return Choice(token_id=-1, error=error)
    if greedy:
        index = int(candidates.values.argmax())
    else:
        index = _sample(candidates.values, top, row.params, uniform(row.params.seed, row.position))
    return _choice(candidates, index, values, row)


def _scored(logits: Logits, row: SamplingRow, target: int) -> Choice:
    values = logits[: row.vocab_size]
    logprob = target_logprob(values, target, row.params)
    if logprob is None:
        return Choice(token_id=-1, error="sampling_failed")
    return Choice(token_id=target, logprob=logprob)


def select_rows(logits: Iterable[Logits], rows: Sequence[SamplingRow]) -> tuple[Choice, ...]:
    """``select`` for each row, in order; ``UNREACHED`` for rows behind a draft that was not chosen.

    A draft counts exactly when it is the row's own choice, so drafts change nothing in what is chosen.
    Raises ``ValueError`` where there are not as many logits as rows.
    """
    choices: list[Choice] = []
    is_reached = True
    for values, row in zip(logits, rows, strict=True):
        choice = _isolated(values, row) if is_reached else UNREACHED
        is_reached = row.draft is None or (is_reached and choice.token_id == row.draft)
        choices.append(choice)
    return tuple(choices)


def _isolated(values: Logits, row: SamplingRow) -> Choice:
    """``select``, where whatever goes wrong is an error of this row."""
    try:
        return select(values, row)
    except Exception:  # noqa: BLE001 - the edge of a request: its row harms no other
        _log.exception("a row could not be sampled; its request ends")
        return Choice(token_id=-1, error="sampling_failed")


def _unmasked_argmax(values: Logits, row: SamplingRow) -> int | None:
    """The largest value's id where that settles the choice: finite and allowed. ``argmax`` finds a NaN first,
    so a finite result also means that there is none."""
    if not values.size:
        return None
    best = int(values.argmax())
    if not np.isfinite(values[best]) or (row.mask is not None and not is_allowed(row.mask, best)):
        return None
    return best


def _unusable(top: np.float32, *, is_masked: bool) -> str | None:
    """Why there is no choice from values of which ``top`` is the largest, NaN where one is."""
    if np.isnan(top) or top == np.inf:
        return "sampling_failed"
    if top == -np.inf:
        return "no_token_allowed" if is_masked else "sampling_failed"
    return None


def _sample(values: Logits, top: np.float32, params: SamplingParams, point: float) -> int:
    """Index of the candidate that ``point`` in [0, 1) falls on. top: the largest of ``values``. The exponential of a whole row is most of the time
    of a selection, so it is taken only of what the cuts may leave."""
    within = preselected(values, top, params)
    if within is not None:
        values = values[within]
    with np.errstate(over="ignore"):  # to -inf, whose weight is 0
        weights = values - top
        weights *= np.float32(1.0 / params.temperature)
        np.exp(weights, out=weights)
    kept = truncated(weights, params)
    index = _inverse_cdf(weights, point) if kept is None else int(kept[_inverse_cdf(weights[kept], point)])
    return index if within is None else int(within[index])


def _inverse_cdf(weights: Logits, point: float) -> int:
    """First index whose cumulative weight exceeds ``point`` of the total. Never one of weight 0.

    Sums of blocks find the block, a running sum finds the index in it: a running sum over the whole row
    would cost ten times as much.
    """
    sums = np.add.reduceat(weights, np.arange(0, weights.size, _BLOCK), dtype=np.float64)
    ends = np.cumsum(sums)
    target = point * float(ends[-1])
    block = min(int(np.searchsorted(ends, target, side="right")), _last_positive(sums))
    before = float(ends[block - 1]) if block else 0.0
    inside = weights[block * _BLOCK : (block + 1) * _BLOCK]
    within = int(np.searchsorted(np.cumsum(inside, dtype=np.float64), target - before, side="right"))
    return block * _BLOCK + min(within, _last_positive(inside))


def _last_positive(weights: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> int:
    return int(np.flatnonzero(weights)[-1])


def _choice(candidates: Candidates, index: int, values: Logits, row: SamplingRow) -> Choice:
    trace = token_trace(candidates, index, values) if row.trace else None
    if row.params.logprobs is None:
        return Choice(token_id=candidates.id_at(index), trace=trace)
    logprob = token_logprob(candidates, index, values, row.params)
    if logprob is None:
        return Choice(token_id=-1, error="sampling_failed")
    return Choice(token_id=logprob.token_id, logprob=logprob, trace=trace)
