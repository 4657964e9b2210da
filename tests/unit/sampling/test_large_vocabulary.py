"""What is computed of a part of a row only equals what is computed of all of it, at the sizes of real vocabularies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from interlock.constraints.bitmask import pack
from interlock.core.sampling import SamplingParams
from interlock.sampling.base import SamplingRow
from interlock.sampling.random import uniform
from interlock.sampling.select import select

CUTS: dict[str, dict[str, Any]] = {
    "none": {},
    "top-k": {"top_k": 50},
    "top-p": {"top_p": 0.95},
    "min-p": {"min_p": 0.05},
    "top-k and top-p": {"top_k": 50, "top_p": 0.9},
    "top-k and min-p": {"top_k": 1000, "min_p": 0.02},
    "top-p and min-p": {"top_p": 0.98, "min_p": 0.02},
    "typical-p": {"typical_p": 0.9},
    "top-p and typical-p": {"top_p": 0.95, "typical_p": 0.5},
}


def plain(logits: np.ndarray, allowed: np.ndarray, params: SamplingParams, point: float) -> int:
    """The definition: every step over the whole row."""
    values = np.where(allowed, logits, np.float32(-np.inf))
    weights = np.exp((values - values.max()) * np.float32(1.0 / params.temperature))
    order = np.argsort(-values, kind="stable")
    if params.top_k:
        order = order[: params.top_k]
    mass = np.cumsum(weights[order], dtype=np.float64)
    if params.top_p < 1:
        order = order[: int(np.searchsorted(mass, params.top_p * mass[-1])) + 1]
    kept = np.sort(order[weights[order] >= np.float32(params.min_p)])
    if params.typical_p < 1:
        kept = typical(kept, weights[kept].astype(np.float64), params.typical_p)
    mass = np.cumsum(weights[kept], dtype=np.float64)
    return int(kept[np.searchsorted(mass, point * mass[-1], side="right")])


def typical(ids: np.ndarray, masses: np.ndarray, typical_p: float) -> np.ndarray:
    ids, masses = ids[masses > 0], masses[masses > 0] / masses.sum()
    surprise = -np.log(masses)
    order = np.argsort(np.abs(surprise - (masses * surprise).sum()), kind="stable")
    return np.sort(ids[order[: int(np.searchsorted(np.cumsum(masses[order]), typical_p)) + 1]])


@pytest.mark.parametrize("share", [1.0, 0.9, 0.2])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("vocab_size", [49_152, 151_669])
def test_a_part_of_the_row_gives_the_choice_of_the_whole_row(vocab_size, cut, share):
    rng = np.random.default_rng(vocab_size)
    for seed in range(4):
        logits = 4 * rng.standard_normal(vocab_size, dtype=np.float32)
        allowed = rng.random(vocab_size) < share
        params = SamplingParams(temperature=(0.5, 0.8, 1.0, 1.7)[seed], seed=seed, **CUTS[cut])
        row = SamplingRow(
            params=params, position=seed, vocab_size=vocab_size, mask=None if share == 1.0 else pack(allowed)
        )
        assert select(logits, row).token_id == plain(logits, allowed, params, uniform(seed, seed))


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("top_p", [0.5, 0.9, 0.999])
def test_a_flat_row_gives_the_choice_of_the_whole_row(top_p, spread):
    """Most of the vocabulary is in the nucleus, and rounded logits are equal to many others."""
    rng = np.random.default_rng(5)
    for seed in range(3):
        logits = np.round(spread * rng.standard_normal(49_152), 1).astype(np.float32)
        params = SamplingParams(temperature=1.5, seed=seed, top_p=top_p)
        row = SamplingRow(params=params, position=seed, vocab_size=logits.size)
        expected = plain(logits, np.ones(logits.size, dtype=np.bool_), params, uniform(seed, seed))
        assert select(logits, row).token_id == expected
