"""Cut the tail of a distribution: top-k, then top-p, then min-p, then typical-p, each on what the one before left.

All return indices in ascending order, so that the order of the inverse CDF never depends on which cuts were
asked for. Equal values are ranked by index, lower first; each cut therefore keeps a definite set.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from interlock.core.sampling import SamplingParams
from interlock.sampling.candidates import Logits

Indices = NDArray[np.int64]

_BLOCK = 64
# Added to the depth of min-p: far more than rounding moves the logarithm of a weight.
_SLACK = 0.01
# Weights relative to the largest; the nucleus is looked for above each in turn before all are sorted.
_NUCLEUS_FLOORS = (1e-2, 1e-4)


def truncated(weights: Logits, params: SamplingParams) -> Indices | None:
    """Indices that survive the cuts, ascending; ``None`` where nothing was cut.

    weights: float32 [n] relative to the largest, so that the largest is 1.
    """
    kept: Indices | None = None
    if 0 < params.top_k < weights.size:
        kept = np.sort(largest(weights, params.top_k))
    if params.top_p < 1.0:
        kept = _compose(kept, _nucleus(_at(weights, kept), params.top_p))
    if params.min_p > 0.0:
        kept = _compose(kept, np.flatnonzero(_at(weights, kept) >= np.float32(params.min_p)))
    if params.typical_p < 1.0:
        kept = _compose(kept, _typical(_at(weights, kept), params.typical_p))
    return kept


def preselected(values: Logits, top: np.float32, params: SamplingParams) -> Indices | None:
    """Indices outside of which the cuts leave nothing, ascending; ``None`` where only the weights can tell.

    values: float32 [n], logits before temperature; top: the largest of them. What ``truncated`` keeps of these is what
    it keeps of all.
    """
    if 0 < params.top_k < values.size:
        return np.sort(largest(values, params.top_k))
    if params.min_p > 0.0 and params.top_p == 1.0:
        depth = params.temperature * (math.log(params.min_p) - _SLACK)
        return np.flatnonzero(values >= top + np.float32(depth))
    return None


def largest(values: Logits, count: int) -> Indices:
    """Indices of the ``count`` largest values (fewer if there are fewer), best first, ties by index."""
    count = min(count, values.size)
    index = _at_least_bound(values, count)
    if index is None:
        return _ranked(values)[:count]
    return index[_ranked(values[index])[:count]]


def _at_least_bound(values: Logits, count: int) -> Indices | None:
    """A superset of the largest ``count``, ascending, found without sorting all values.

    The ``count``-th largest of the blocks' maxima is a lower bound of the ``count``-th largest value.
    """
    num_blocks = values.size // _BLOCK
    if not 0 < count <= num_blocks // 2:
        return None
    maxima = values[: num_blocks * _BLOCK].reshape(num_blocks, _BLOCK).max(axis=1)
    bound = np.partition(maxima, num_blocks - count)[num_blocks - count]
    return np.flatnonzero(values >= bound)


def _nucleus(weights: Logits, top_p: float) -> Indices:
    """The smallest set of most probable candidates whose mass reaches ``top_p``; at least one."""
    wanted = top_p * float(weights.sum(dtype=np.float64))
    for floor in _NUCLEUS_FLOORS:
        index = np.flatnonzero(weights >= np.float32(floor))
        if weights[index].sum(dtype=np.float64) > wanted:
            return _head(weights, index, wanted)
    return _head(weights, np.arange(weights.size), wanted)


def _head(weights: Logits, index: Indices, wanted: float) -> Indices:
    return np.sort(_reaching(index[_ranked(weights[index])], weights, wanted))


def _typical(weights: Logits, typical_p: float) -> Indices:
    """The smallest set of candidates whose surprise (-log p) is nearest to the entropy and whose mass reaches
    ``typical_p``; at least one. Locally typical sampling (Meister et al. 2023, arXiv:2202.00666)."""
    positive = np.flatnonzero(weights)
    shares = weights[positive].astype(np.float64)
    shares /= shares.sum()
    surprise = -np.log(shares)
    ranked = np.argsort(np.abs(surprise - float(shares @ surprise)), kind="stable")
    return np.sort(positive[_reaching(ranked, shares, typical_p)])


def _reaching(ranked: Indices, masses: NDArray[np.floating], wanted: float) -> Indices:
    """The first of ``ranked`` whose masses together reach ``wanted``; all where they do not."""
    mass = np.cumsum(masses[ranked], dtype=np.float64)
    return ranked[: int(np.searchsorted(mass, wanted)) + 1]


def _ranked(values: Logits) -> Indices:
    return np.argsort(-values, kind="stable")


def _at(weights: Logits, kept: Indices | None) -> Logits:
    return weights if kept is None else weights[kept]


def _compose(kept: Indices | None, index: Indices) -> Indices:
    return index if kept is None else kept[index]
