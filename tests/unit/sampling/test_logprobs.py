from __future__ import annotations

import math

import numpy as np
import pytest

from interlock.constraints.bitmask import of_ids
from interlock.core.sampling import SamplingParams
from interlock.sampling.base import SamplingRow
from interlock.sampling.select import select

NAN = math.nan


def logits_of(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def row_of(vocab_size: int, *, mask=None, **params: object) -> SamplingRow:
    settings = SamplingParams(**{"temperature": 0.0, **params})
    return SamplingRow(params=settings, position=0, vocab_size=vocab_size, mask=mask)


LOGPROBS = {
    "masked": ((1, 2), "masked", 0.6, {1: 0.6, 2: 0.4}),
    "the model's": ((1, 2), "model", 0.3, {0: 0.5, 1: 0.3, 2: 0.2}),
    "masked, of a choice without an alternative": ((1,), "masked", 1.0, {1: 1.0}),
    "the model's, of a choice without an alternative": ((1,), "model", 0.3, {0: 0.5, 1: 0.3, 2: 0.2}),
    "without a mask they are the same": (None, "masked", 0.5, {0: 0.5, 1: 0.3, 2: 0.2}),
}


@pytest.mark.parametrize("case", LOGPROBS)
def test_logprobs_are_before_temperature_of_the_distribution_that_is_asked_for(case):
    ids, logprobs_of, probability, top = LOGPROBS[case]
    logits = np.log(np.array([0.5, 0.3, 0.2], dtype=np.float32))
    mask = None if ids is None else of_ids(3, ids)
    choice = select(logits, row_of(3, mask=mask, temperature=0.01, logprobs=5, logprobs_of=logprobs_of))
    assert choice.token_id == choice.logprob.token_id == (0 if ids is None else 1)
    assert choice.logprob.logprob == pytest.approx(math.log(probability), abs=1e-6)
    assert [token_id for token_id, _ in choice.logprob.top] == list(top)
    assert [math.exp(value) for _, value in choice.logprob.top] == pytest.approx(list(top.values()))


def test_a_model_whose_row_is_no_distribution_has_no_logprobs():
    choice = select(logits_of(NAN, 1, 2), row_of(3, mask=of_ids(3, (1, 2)), logprobs=1))
    assert choice.error == "sampling_failed"


def test_no_alternatives_where_none_are_asked():
    choice = select(logits_of(1, 2), row_of(2, logprobs=0))
    assert choice.logprob.top == ()
    assert choice.logprob.logprob == pytest.approx(math.log(1 / (1 + math.exp(-1))))


def test_asking_for_logprobs_changes_no_choice():
    logits = np.random.default_rng(3).standard_normal(5000).astype(np.float32)
    for seed in range(20):
        row = {"temperature": 0.9, "top_p": 0.9, "seed": seed}
        assert (
            select(logits, row_of(5000, **row)).token_id
            == select(logits, row_of(5000, logprobs=2, **row)).token_id
        )
