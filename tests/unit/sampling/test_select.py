from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.constraints.bitmask import allocate, pack, set_only
from interlock.core.sampling import SamplingParams
from interlock.sampling.base import Choice, SamplingRow
from interlock.sampling.random import uniform
from interlock.sampling.select import select, select_rows

NAN, INF = math.nan, math.inf


def logits_of(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def mask_of(vocab_size: int, *ids: int) -> np.ndarray:
    row = allocate(1, vocab_size)[0]
    set_only(row, ids)
    return row


def row_of(
    vocab_size: int, *, mask=None, position=0, output_counts=None, seen=None, **params: object
) -> SamplingRow:
    return SamplingRow(
        params=SamplingParams(**{"temperature": 0.0, **params}),
        position=position,
        vocab_size=vocab_size,
        mask=mask,
        output_counts=output_counts or {},
        seen=seen,
    )


# --- a reference without any short cut ---------------------------------------------------------------


def adjusted_values(logits: np.ndarray, row: SamplingRow) -> dict[int, np.float32]:
    params = row.params
    values = {i: np.float32(logits[i]) for i in range(row.vocab_size)}
    for i, bias in params.logit_bias:
        if i in values:
            values[i] += np.float32(bias)
    penalty = np.float32(params.repetition_penalty)
    for i in [] if row.seen is None else row.seen.tolist():
        if i in values:
            values[i] = values[i] / penalty if values[i] > 0 else values[i] * penalty
    for i, count in row.output_counts.items():
        if i in values and count > 0:
            values[i] -= np.float32(count) * np.float32(params.frequency_penalty) + np.float32(
                params.presence_penalty
            )
    if row.mask is not None:
        words = row.mask.view(np.uint32).tolist()
        values = {i: v for i, v in values.items() if words[i // 32] >> (i % 32) & 1}
    return values


def reference(logits: np.ndarray, row: SamplingRow) -> int | str:
    params = row.params
    values = adjusted_values(logits, row)
    if any(np.isnan(v) or v == INF for v in values.values()):
        return "sampling_failed"
    if not values or max(values.values()) == -INF:
        return "sampling_failed" if row.mask is None else "no_token_allowed"
    top = max(values.values())
    if params.temperature == 0:
        return min(i for i, v in values.items() if v == top)
    with np.errstate(over="ignore"):
        weights = {
            i: np.exp((v - top) * np.float32(1 / params.temperature), dtype=np.float32)
            for i, v in values.items()
        }
    ranked = sorted(weights, key=lambda i: (-weights[i], i))
    if params.top_k:
        ranked = ranked[: params.top_k]
    if params.top_p < 1:
        total, mass, kept = math.fsum(weights[i] for i in ranked), 0.0, []
        for i in ranked:
            kept.append(i)
            mass += float(weights[i])
            if mass >= params.top_p * total:
                break
        ranked = kept
    ranked = [i for i in ranked if weights[i] >= np.float32(params.min_p)]
    if params.typical_p < 1:
        ranked = typical(weights, sorted(i for i in ranked if weights[i] > 0), params.typical_p)
    target = uniform(params.seed, row.position) * math.fsum(weights[i] for i in ranked)
    mass = 0.0
    for i in sorted(ranked):
        mass += float(weights[i])
        if mass > target:
            return i
    return max(i for i in ranked if weights[i] > 0)


def typical(weights: dict[int, np.float32], ids: list[int], typical_p: float) -> list[int]:
    """Those whose surprise is nearest to the entropy, until their mass reaches ``typical_p``."""
    total = math.fsum(weights[i] for i in ids)
    surprise = {i: -math.log(float(weights[i]) / total) for i in ids}
    entropy = math.fsum(float(weights[i]) / total * surprise[i] for i in ids)
    kept, mass = [], 0.0
    for i in sorted(ids, key=lambda i: abs(surprise[i] - entropy)):
        kept.append(i)
        mass += float(weights[i]) / total
        if mass >= typical_p:
            break
    return kept


def answer(choice: Choice) -> int | str:
    assert (choice.error is None) == (choice.token_id >= 0)
    return choice.token_id if choice.error is None else choice.error


@st.composite
def problems(draw) -> tuple[np.ndarray, SamplingRow]:
    vocab_size = draw(st.integers(1, 700))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.0, 0.3, 3.0, 30.0]))
    logits = (rng.standard_normal(vocab_size + draw(st.integers(0, 40))) * scale).astype(np.float32)
    if draw(st.booleans()):
        logits = np.round(logits)  # ties
    for value in draw(st.lists(st.sampled_from([-INF, -INF, NAN, INF]), max_size=2)):
        logits[draw(st.integers(0, logits.size - 1))] = value
    share = draw(st.sampled_from([None, 0.0, 0.005, 0.3, 0.7, 1.0]))
    ids = st.integers(0, vocab_size + 5)
    row = SamplingRow(
        params=SamplingParams(
            temperature=draw(st.sampled_from([0.0, 0.01, 0.7, 1.0, 2.0])),
            top_k=draw(st.sampled_from([0, 0, 1, 3, 50])),
            top_p=draw(st.sampled_from([1.0, 0.999, 0.9, 0.2, 1e-6])),
            min_p=draw(st.sampled_from([0.0, 0.0, 0.05, 0.9])),
            typical_p=draw(st.sampled_from([1.0, 1.0, 0.9, 0.2])),
            repetition_penalty=draw(st.sampled_from([1.0, 1.3, 0.8])),
            frequency_penalty=draw(st.sampled_from([0.0, 0.5, -2.0])),
            presence_penalty=draw(st.sampled_from([0.0, 1.5])),
            logit_bias=tuple(draw(st.lists(st.tuples(ids, st.sampled_from([-100.0, 5.0, 100.0])), max_size=3))),
            seed=draw(st.integers(0, 2**64 - 1)),
            logprobs=draw(st.sampled_from([None, 0, 3])),
        ),
        position=draw(st.integers(0, 5000)),
        vocab_size=vocab_size,
        mask=None if share is None else pack(rng.random(vocab_size) < share),
        output_counts=draw(st.dictionaries(ids, st.integers(1, 4), max_size=3)),
        seen=np.array(sorted(draw(st.sets(ids, max_size=4))), dtype=np.int32),
    )
    return logits, row


@settings(max_examples=200, deadline=None)
@given(problems())
def test_equals_a_naive_reference(problem):
    logits, row = problem
    before = logits.copy()
    choice = select(logits, row)
    expected = reference(logits, row)
    np.testing.assert_array_equal(logits, before)
    if row.params.logprobs is not None and choice.error == "sampling_failed":
        assert not np.isfinite(logits[: row.vocab_size]).all()
    else:
        assert answer(choice) == expected


# --- greedy ------------------------------------------------------------------------------------------

GREEDY = {
    "the largest": (logits_of(1, 3, 2), None, 1),
    "the lowest id of equal ones": (logits_of(0, 3, 3, 3), None, 1),
    "the lowest allowed id of equal ones": (logits_of(3, 3, 3, 3), (2, 3), 2),
    "the largest allowed": (logits_of(9, 1, 2, 3), (1, 2), 2),
    "never a padded id": (logits_of(1, 0, 0, 0, 0, 99), None, 0),
    "NaN where it is not allowed": (logits_of(NAN, 1, 2), (1, 2), 2),
    "+inf where it is not allowed": (logits_of(INF, 1, 2), (1, 2), 2),
    "the only allowed, however unlikely": (logits_of(5, -1e30, 5), (1,), 1),
}


@pytest.mark.parametrize("case", GREEDY)
def test_greedy_chooses(case):
    logits, allowed, expected = GREEDY[case]
    size = min(logits.size, 5)
    mask = None if allowed is None else mask_of(size, *allowed)
    assert select(logits, row_of(size, mask=mask)) == Choice(token_id=expected)


def test_a_tiny_temperature_is_greedy():
    assert select(logits_of(1.0, 1.0001), row_of(2, temperature=1e-6)).token_id == 1


# --- errors ------------------------------------------------------------------------------------------

ERRORS = {
    "empty mask": (logits_of(1, 2), (), "no_token_allowed"),
    "all allowed are -inf": (logits_of(1, -INF, -INF), (1, 2), "no_token_allowed"),
    "all are -inf without a mask": (logits_of(-INF, -INF), None, "sampling_failed"),
    "NaN": (logits_of(1, NAN), None, "sampling_failed"),
    "NaN that is allowed": (logits_of(1, NAN, 5), (0, 1), "sampling_failed"),
    "+inf": (logits_of(1, INF), None, "sampling_failed"),
    "all NaN": (logits_of(NAN, NAN), (0, 1), "sampling_failed"),
}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("case", ERRORS)
def test_unusable_rows_choose_nothing(case, temperature):
    logits, allowed, code = ERRORS[case]
    mask = None if allowed is None else mask_of(logits.size, *allowed)
    choice = select(logits, row_of(logits.size, mask=mask, temperature=temperature, top_k=2, top_p=0.5))
    assert choice == Choice(token_id=-1, error=code)


def test_a_bad_row_harms_no_other():
    logits = [logits_of(1, 2), logits_of(NAN, NAN), logits_of(2, 1)]
    choices = select_rows(logits, [row_of(2)] * 3)
    assert [answer(choice) for choice in choices] == [1, "sampling_failed", 0]


def test_rows_and_logits_must_match_in_number():
    with pytest.raises(ValueError, match="zip"):
        select_rows([logits_of(1)], [])


@pytest.mark.parametrize(
    "row", [row_of(5), row_of(2, mask=np.zeros(2, np.int32))], ids=["narrow logits", "wide mask"]
)
def test_misfits_are_refused(row):
    with pytest.raises(ValueError, match="vocabulary"):
        select(
            logits_of(1, 2),
            SamplingRow(params=SamplingParams(), position=0, vocab_size=row.vocab_size, mask=row.mask),
        )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_bits_and_logits_of_the_padding_are_never_chosen(temperature):
    logits = np.full(40, 50.0, dtype=np.float32)
    logits[:5] = [1, 2, 9, 2, 1]
    row = row_of(5, mask=np.full(1, -1, np.int32), temperature=temperature, top_k=1)
    assert select(logits, row).token_id == 2


# --- bias and penalties ------------------------------------------------------------------------------


def test_bias_of_100_bans_and_forces():
    logits = logits_of(20, -20, 0)
    assert select(logits, row_of(3, logit_bias=((0, -100.0),))).token_id == 2
    for seed in range(20):
        row = row_of(3, logit_bias=((1, 100.0),), temperature=1.0, seed=seed)
        assert select(logits, row).token_id == 1


def test_no_bias_lifts_a_forbidden_token():
    row = row_of(3, logit_bias=((1, 100.0),), mask=mask_of(3, 0, 2))
    assert select(logits_of(1, 0, 2), row).token_id == 2


PENALTIES = {
    "frequency counts": ({"frequency_penalty": 1.0, "output_counts": {1: 3}}, [5, 2, 5, -5]),
    "presence does not": ({"presence_penalty": 1.0, "output_counts": {1: 3}}, [5, 4, 5, -5]),
    "both": (
        {"frequency_penalty": 0.5, "presence_penalty": 1.0, "output_counts": {0: 2, 3: 1}},
        [3, 5, 5, -6.5],
    ),
    "negative ones reward": ({"presence_penalty": -2.0, "output_counts": {2: 1}}, [5, 5, 7, -5]),
    "repetition divides or multiplies": (
        {"repetition_penalty": 2.0, "seen": np.array([1, 3], np.int32)},
        [5, 2.5, 5, -10],
    ),
    "repetition comes before presence": (
        {
            "repetition_penalty": 2.0,
            "presence_penalty": 1.0,
            "seen": np.array([1], np.int32),
            "output_counts": {1: 1},
        },
        [5, 1.5, 5, -5],
    ),
    "bias comes before repetition": (
        {"repetition_penalty": 2.0, "logit_bias": ((1, 3.0),), "seen": np.array([1], np.int32)},
        [5, 4, 5, -5],
    ),
}


@pytest.mark.parametrize("case", PENALTIES)
def test_penalties(case):
    arguments, expected = PENALTIES[case]
    choice = select(logits_of(5, 5, 5, -5), row_of(4, logprobs=4, **arguments))
    total = math.log(sum(math.exp(value) for value in expected))
    assert dict(choice.logprob.top) == pytest.approx(
        {i: value - total for i, value in enumerate(expected)}, abs=1e-5
    )


# --- sampling ----------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "plain": ({}, None, [0.1, 0.2, 0.3, 0.4]),
    "temperature flattens": ({"temperature": 2.0}, None, [v**0.5 for v in (0.1, 0.2, 0.3, 0.4)]),
    "temperature sharpens": ({"temperature": 0.5}, None, [v**2 for v in (0.1, 0.2, 0.3, 0.4)]),
    "top-k": ({"top_k": 2}, None, [0, 0, 0.3, 0.4]),
    "top-p keeps the token that crosses": ({"top_p": 0.5}, None, [0, 0, 0.3, 0.4]),
    "top-p within top-k": ({"top_k": 2, "top_p": 0.5}, None, [0, 0, 0, 1]),
    "min-p": ({"min_p": 0.45}, None, [0, 0.2, 0.3, 0.4]),
    "typical-p": ({"typical_p": 0.45}, None, [0, 0.2, 0.3, 0]),
    "typical-p within top-k": ({"typical_p": 0.5, "top_k": 2}, None, [0, 0, 0.0, 0.4]),
    "mask": ({}, (0, 2), [0.1, 0, 0.3, 0]),
    "cuts see only what is allowed": ({"top_k": 2}, (0, 1, 2), [0, 0.2, 0.3, 0]),
}


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_sampled_distribution(case):
    params, allowed, weights = DISTRIBUTIONS[case]
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32))
    mask = None if allowed is None else mask_of(4, *allowed)
    draws = 4000
    counts = Counter(
        select(logits, row_of(4, mask=mask, position=i, **{"temperature": 1.0, "seed": 11, **params})).token_id
        for i in range(draws)
    )
    chi_square = 0.0
    for token_id, weight in enumerate(weights):
        expected = draws * weight / sum(weights)
        if expected == 0:
            assert counts[token_id] == 0
        else:
            chi_square += (counts[token_id] - expected) ** 2 / expected
    assert chi_square < 21.1  # 3 degrees of freedom, p = 0.0001


def test_the_same_seed_and_position_give_the_same_token_in_any_batch():
    rng = np.random.default_rng(0)
    logits = [rng.standard_normal(1000).astype(np.float32) for _ in range(8)]
    rows = [row_of(1000, temperature=1.0, seed=5, position=i) for i in range(8)]
    together = select_rows(logits, rows)
    assert together == tuple(select(values, row) for values, row in zip(logits, rows, strict=True))
    moved = [row_of(1000, temperature=1.0, seed=5, position=i + 1) for i in range(8)]
    assert together != select_rows(logits, moved)


def test_equal_values_are_cut_by_id():
    chosen = {
        select(np.zeros(500, np.float32), row_of(500, temperature=1.0, top_k=3, seed=seed)).token_id
        for seed in range(60)
    }
    assert chosen == {0, 1, 2}


def rows_of(drafts: list[int | None], **params: Any) -> list[SamplingRow]:
    given_params = SamplingParams(**{"temperature": 0.0, **params})
    return [
        SamplingRow(params=given_params, position=index, vocab_size=3, draft=draft)
        for index, draft in enumerate(drafts)
    ]


@pytest.mark.parametrize(
    ("drafts", "chosen"),
    [
        ([None, None], [0, 1]),
        ([0, None], [0, 1]),
        ([2, None], [0, -1]),
        ([2, 0, None], [0, -1, -1]),
        ([0, 0, None], [0, 1, -1]),
        ([2, None, 2, None], [0, -1, 2, 0]),  # the next block begins anew
    ],
)
def test_rows_behind_a_draft_count_only_if_it_is_chosen(drafts: list[int | None], chosen: list[int]) -> None:
    logits = [np.eye(3, dtype=np.float32)[index % 3] for index in range(len(drafts))]
    choices = select_rows(logits, rows_of(drafts))
    assert [choice.token_id for choice in choices] == chosen
    assert [choice.error for choice in choices] == [None] * len(drafts)


def test_a_row_that_fails_ends_its_block_only() -> None:
    bad = np.full(3, np.nan, dtype=np.float32)
    good = np.eye(3, dtype=np.float32)[1]
    choices = select_rows([bad, good, good], rows_of([1, None, None]))
    assert [(choice.token_id, choice.error) for choice in choices] == [
        (-1, "sampling_failed"),
        (-1, None),
        (1, None),
    ]


def test_behind_a_draft_that_nothing_equals_no_row_is_reached():
    rows = [
        SamplingRow(params=SamplingParams(temperature=0.0), position=0, vocab_size=3, draft=draft)
        for draft in (-1, -1, None)
    ]
    choices = select_rows([np.array([0, 1, 2], np.float32)] * 3, rows)
    assert [choice.token_id for choice in choices] == [2, -1, -1]
