"""Log probabilities of a choice, after bias and penalties and before temperature."""

from __future__ import annotations

import math

import numpy as np

from interlock.core.engine import TokenLogprob
from interlock.sampling.candidates import Candidates, Logits
from interlock.sampling.truncation import largest


def token_logprob(candidates: Candidates, index: int, values: Logits, num_top: int) -> TokenLogprob | None:
    """Of the candidate at ``index``, with the best ``num_top`` candidates.

    ``logprob`` and ``top`` are normalised over the allowed ids, ``raw_logprob`` over ``values``, the same logits
    without the mask: ``exp(raw_logprob - logprob)`` is the probability mass that the mask left.
    ``None`` where a logit outside the mask is NaN or +inf, so that the raw one does not exist.
    """
    total = _log_sum_exp(candidates.values)
    raw_total = total if candidates.values is values else _log_sum_exp(values)
    if not math.isfinite(raw_total):
        return None
    value = float(candidates.values[index])
    best = largest(candidates.values, num_top) if num_top else ()
    top = tuple(
        (candidates.id_at(int(i)), float(candidates.values[i]) - total)
        for i in best
        if candidates.values[i] > -np.inf
    )
    token_id = candidates.id_at(index)
    return TokenLogprob(token_id=token_id, logprob=value - total, raw_logprob=value - raw_total, top=top)


def _log_sum_exp(values: Logits) -> float:
    """NaN where a value is NaN or +inf; at least one value is finite."""
    top = float(values.max())
    if not math.isfinite(top):
        return math.nan
    with np.errstate(over="ignore"):  # to -inf, whose weight is 0
        return top + math.log(float(np.exp(values - np.float32(top)).sum(dtype=np.float64)))
