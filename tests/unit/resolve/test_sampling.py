from __future__ import annotations

import pytest

from interlock.core.sampling import SamplingOptions, SamplingParams
from interlock.errors import InterlockError
from interlock.resolve.sampling import resolve_sampling

VOCABULARY = 300


def test_defaults_are_openais_with_a_random_seed():
    first, second = (resolve_sampling(SamplingOptions(), VOCABULARY) for _ in range(2))
    assert first == SamplingParams(seed=first.seed)
    assert first.seed != second.seed


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0),
        ("temperature", 2.0),
        ("top_p", 1.0),
        ("top_p", 1e-9),
        ("top_k", 0),
        ("top_k", 10_000_000),
        ("min_p", 0.0),
        ("min_p", 0.99),
        ("frequency_penalty", -2),
        ("presence_penalty", 2),
        ("repetition_penalty", 0.1),
        ("repetition_penalty", 2),
        ("seed", 2**64 - 1),
        ("logit_bias", ((0, -100.0), (VOCABULARY - 1, 100.0))),
    ],
)
def test_the_ends_of_a_range_are_legal(field, value):
    assert getattr(resolve_sampling(SamplingOptions(**{field: value}), VOCABULARY), field) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.01),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_k", -2),
        ("min_p", 1.0),
        ("min_p", -0.1),
        ("frequency_penalty", 2.1),
        ("presence_penalty", -2.1),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", 2.5),
        ("seed", 2**64),
        ("seed", -(2**63) - 1),
        ("logit_bias", ((VOCABULARY, 1.0),)),
        ("logit_bias", ((-1, 1.0),)),
        ("logit_bias", ((1, 100.5),)),
        ("logit_bias", ((1, float("nan")),)),
    ],
)
def test_what_is_out_of_range_is_named(field, value):
    with pytest.raises(InterlockError) as caught:
        resolve_sampling(SamplingOptions(**{field: value}), VOCABULARY)
    assert (caught.value.code, caught.value.param) == ("invalid_value", field)


def test_minus_one_switches_top_k_off():
    assert resolve_sampling(SamplingOptions(top_k=-1), VOCABULARY).top_k == 0


@pytest.mark.parametrize(("seed", "unsigned"), [(-1, 2**64 - 1), (-(2**63), 2**63), (7, 7)])
def test_negative_seeds_wrap(seed, unsigned):
    assert resolve_sampling(SamplingOptions(seed=seed), VOCABULARY).seed == unsigned


def test_logprobs_are_kept_within_bounds():
    assert resolve_sampling(SamplingOptions(), VOCABULARY).logprobs is None
    assert resolve_sampling(SamplingOptions(logprobs=0), VOCABULARY).logprobs == 0
    assert resolve_sampling(SamplingOptions(logprobs=20), VOCABULARY).logprobs == 20
    for count in (-1, 21):
        with pytest.raises(InterlockError) as caught:
            resolve_sampling(SamplingOptions(logprobs=count), VOCABULARY)
        assert (caught.value.code, caught.value.param) == ("invalid_value", "top_logprobs")
