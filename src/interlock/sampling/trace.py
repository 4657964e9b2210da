"""What a row of logits says about the token that was chosen from it."""

from __future__ import annotations

import numpy as np

from interlock.core.trace import TokenTrace
from interlock.sampling.candidates import Candidates, Logits
from interlock.sampling.truncation import largest

NUM_ALLOWED_SHOWN = 5


def token_trace(candidates: Candidates, index: int, values: Logits) -> TokenTrace | None:
    """Of the candidate at ``index``. values: the same logits without the mask. ``None`` where one of them is NaN or
    +inf, so that there are no probabilities."""
    top = values.max()
    if not np.isfinite(top):
        return None
    total = float(np.exp(values - top).sum(dtype=np.float64))
    weights = np.exp(candidates.values - top).astype(np.float64) / total
    is_allowed = candidates.values > -np.inf
    num_allowed = int(np.count_nonzero(is_allowed))
    wanted = int(values.argmax())
    best = [int(one) for one in largest(candidates.values, NUM_ALLOWED_SHOWN) if is_allowed[one]]
    return TokenTrace(
        token_id=candidates.id_at(index),
        source="forced" if num_allowed == 1 else "sampled",
        probability=float(weights[index]),
        wanted=wanted,
        wanted_probability=1.0 / total,
        num_allowed=num_allowed,
        allowed=tuple((candidates.id_at(one), float(weights[one])) for one in best),
        removed=0.0 if candidates.values is values else max(0.0, 1.0 - float(weights.sum())),
    )
