"""Log probabilities of a choice, after bias and penalties and before temperature."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from interlock.core.engine import TokenLogprob
from interlock.core.sampling import SamplingParams
from interlock.sampling.candidates import Candidates, Logits
from interlock.sampling.truncation import largest

LEAST_LOGPROB = -9999.0
"""In the place of minus infinity, which JSON has not."""


def token_logprob(
    candidates: Candidates, index: int, values: Logits, params: SamplingParams
) -> TokenLogprob | None:
    """Of the candidate at ``index``, with the best ``params.logprobs`` of the distribution asked for: over the
    candidates, or over ``values``, the same logits without the mask.

    ``None`` where a logit outside the mask is NaN or +inf: such a row says nothing.
    """
    total = _log_sum_exp(values)
    if not math.isfinite(total):
        return None
    chosen = candidates.id_at(index)
    row, at = candidates, index
    if params.logprobs_of == "model":
        row, at = Candidates(values), chosen
    elif candidates.values is not values:
        total = _log_sum_exp(candidates.values)
    top = tuple(
        (row.id_at(int(i)), float(row.values[i]) - total)
        for i in largest(row.values, params.logprobs or 0)
        if row.values[i] > -np.inf
    )
    return TokenLogprob(token_id=chosen, logprob=float(row.values[at]) - total, top=top)


def target_logprob(values: Logits, target: int, params: SamplingParams) -> TokenLogprob | None:
    """Of a token that stands already. ``None`` where a logit is NaN or +inf."""
    found = token_logprob(Candidates(values), target, values, params)
    if found is None or found.logprob is None:
        return None
    rank = 1 + int((values > values[target]).sum())
    return replace(found, logprob=max(found.logprob, LEAST_LOGPROB), rank=rank)


def _log_sum_exp(values: Logits) -> float:
    """NaN where a value is NaN or +inf; at least one value is finite."""
    top = float(values.max())
    if not math.isfinite(top):
        return math.nan
    with np.errstate(over="ignore"):  # to -inf, whose weight is 0
        return top + math.log(float(np.exp(values - np.float32(top)).sum(dtype=np.float64)))
