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
Values = NDArray[np.floating]

_BLOCK = 64
# Added to the depth of min-p: far more than rounding moves the logarithm of a weight.
_SLACK = 0.01
# Relative to the largest weight: the nucleus of most rows lies above.
_NUCLEUS_FLOOR = np.float32(1e-4)
_BITS_OF_ONE = np.int32(0x3F80_0000)  # of 1.0 as a float32
_COARSE_SHIFT = 18  # leaves the exponent and 5 bits of the fraction
_FEW = 1024  # keys that are sorted at once


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
    index = np.flatnonzero(weights >= _NUCLEUS_FLOOR)
    if index.size < weights.size // 8:  # else picking them costs more than looking at all
        likely = weights[index]
        if likely.sum(dtype=np.float64) >= wanted:
            return index[_heaviest(likely, wanted)]
    return _heaviest(weights, wanted)


def _heaviest(weights: Logits, wanted: float) -> Indices:
    """The fewest largest whose sum reaches ``wanted``; all where it does not."""
    return _until(_BITS_OF_ONE - weights.view(np.int32), weights, wanted)


def _typical(weights: Logits, typical_p: float) -> Indices:
    """The smallest set of candidates whose surprise (-log p) is nearest to the entropy and whose mass reaches
    ``typical_p``; at least one. Locally typical sampling (Meister et al. 2023, arXiv:2202.00666)."""
    positive = np.flatnonzero(weights > 0)
    weights = weights[positive]
    shares = weights.astype(np.float64)
    shares /= shares.sum()
    # Surprise and entropy are both too small by the logarithm of the total, so their difference is right.
    surprise = -np.log(weights)
    distance = np.abs(surprise - np.float32((shares * surprise).sum()))
    return positive[_until(distance.view(np.int32), shares, typical_p)]


def _until(keys: NDArray[np.int32], masses: Values, wanted: float) -> Indices:
    """Indices, ascending, of the smallest keys, ties by index, down to the one with which the mass reaches ``wanted``.

    keys: not negative; the bits of a float32 that is not negative are in the order of its value. Only keys that share
    their first bits with the last one are sorted: sums of mass by first bits tell which these are.
    """
    if keys.size <= _FEW:
        return np.sort(_first_ranked(keys, masses, wanted))
    coarse = keys >> _COARSE_SHIFT
    # bincount converts narrower types itself, five times as slowly.
    reached = np.cumsum(np.bincount(coarse.astype(np.intp), weights=masses.astype(np.float64, copy=False)))
    border = min(int(np.searchsorted(reached, wanted)), reached.size - 1)
    before = float(reached[border - 1]) if border else 0.0
    at_border = np.flatnonzero(coarse == border)
    kept = coarse < border
    kept[at_border[_first_ranked(keys[at_border], masses[at_border], wanted - before)]] = True
    return np.flatnonzero(kept)


def _first_ranked(keys: NDArray[np.int32], masses: Values, wanted: float) -> Indices:
    """What ``_until`` gives, in order of the keys, found by sorting all."""
    order = np.argsort(keys, kind="stable")
    reached = np.cumsum(masses[order], dtype=np.float64)
    return order[: int(np.searchsorted(reached, wanted)) + 1]


def _ranked(values: Logits) -> Indices:
    return np.argsort(-values, kind="stable")


def _at(weights: Logits, kept: Indices | None) -> Logits:
    return weights if kept is None else weights[kept]


def _compose(kept: Indices | None, index: Indices) -> Indices:
    return index if kept is None else kept[index]
