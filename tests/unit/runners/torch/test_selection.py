"""The device's choices are those of the numpy reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

torch = pytest.importorskip("torch", reason="needs the extra torch")

from interlock.constraints import bitmask  # noqa: E402
from interlock.core.sampling import SamplingParams  # noqa: E402
from interlock.runners.torch import abi  # noqa: E402
from interlock.runners.torch import selector as selector_file  # noqa: E402
from interlock.runners.torch.forward import PassResult  # noqa: E402
from interlock.runners.torch.random import uniform as device_uniform  # noqa: E402
from interlock.runners.torch.rows import plan_rows, select_arrays  # noqa: E402
from interlock.runners.torch.selection import select  # noqa: E402
from interlock.runners.torch.selector import Selector, chooses_well  # noqa: E402
from interlock.sampling.base import Choice, SamplingRow  # noqa: E402
from interlock.sampling.random import uniform  # noqa: E402
from interlock.sampling.select import UNREACHED, select_rows  # noqa: E402

VOCAB_SIZE = 1000
NUM_LOGITS = 1024  # wider than the vocabulary, as many models' are
GREEDY = SamplingParams(temperature=0.0)


def selector(*, static: bool = False, on_device: bool = True) -> Selector:
    return Selector(
        64, torch.device("cpu"), on_device=on_device, static_drafts=7 if static else None, pool=None
    )


def chosen(one: Selector, logits: np.ndarray[Any, Any], rows: Sequence[SamplingRow]) -> tuple[Choice, ...]:
    """In fixed shapes the logits have rows of padding behind them."""
    is_static = one._static_drafts is not None
    if is_static:
        padding = abs(len(logits) - (1 << (len(logits) - 1).bit_length()))
        logits = np.concatenate([logits, np.full((padding, logits.shape[1]), 99, np.float32)])
    result = PassResult(torch.from_numpy(logits.copy()), is_static)
    return one.select(result, one.prepare(rows))


def random_logits(rng: np.random.Generator, num_rows: int) -> np.ndarray[Any, Any]:
    return rng.normal(0, 3, (num_rows, NUM_LOGITS)).astype(np.float32)


def random_mask(rng: np.random.Generator) -> np.ndarray[Any, Any] | None:
    share = rng.choice([None, 0.001, 0.3, 0.9])
    return None if share is None else bitmask.pack(rng.random(VOCAB_SIZE) < share)


PARAMS = {
    "greedy": {"temperature": 0.0},
    "sampled": {"temperature": 0.9},
    "top k": {"temperature": 1.2, "top_k": 12},
    "top p": {"temperature": 1.0, "top_p": 0.8},
    "min p": {"temperature": 0.7, "min_p": 0.05},
    "all cuts": {"temperature": 1.5, "top_k": 50, "top_p": 0.9, "min_p": 0.01},
    "bias": {"temperature": 0.0, "logit_bias": ((5, 9.0), (6, -100.0), (5, 1.0), (2000, 1.0))},
    "penalties": {
        "temperature": 0.8,
        "frequency_penalty": 0.7,
        "presence_penalty": 0.4,
        "repetition_penalty": 1.3,
        "logit_bias": ((7, 4.0),),
    },
}


def random_row(rng: np.random.Generator, params: dict[str, Any], **fields: Any) -> SamplingRow:
    seed = int(rng.integers(0, 2**64, dtype=np.uint64))
    ids = rng.choice(VOCAB_SIZE + 20, 30, replace=False)
    return SamplingRow(
        params=SamplingParams(**{**params, "seed": seed}),
        position=int(rng.integers(0, 5000)),
        vocab_size=VOCAB_SIZE,
        mask=random_mask(rng),
        output_counts={int(one): int(rng.integers(0, 4)) for one in ids[:10]},
        seen=ids.astype(np.int32),
        **fields,
    )


def is_at_a_border(logits: np.ndarray[Any, Any], row: SamplingRow, expected: int, found: int) -> bool:
    """The two are neighbours among what can be chosen, and a number a millionth away chooses the other."""
    point = uniform(row.params.seed, row.position)
    lower, higher = sorted((expected, found))
    values = logits[:VOCAB_SIZE].astype(np.float64) / row.params.temperature
    weights = np.exp(values - values.max())
    if row.mask is not None:
        weights[~bitmask.unpack(row.mask, VOCAB_SIZE)] = 0
    border = weights[:higher].sum() / weights.sum()
    return abs(border - point) < 1e-6 and not weights[lower + 1 : higher].any()


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", PARAMS)
def test_choices_are_those_of_the_reference(name: str, static: bool):
    rng = np.random.default_rng(list(name.encode()))
    one = selector(static=static)
    for num_rows in (1, 2, 3, 8, 13):
        logits = random_logits(rng, num_rows)
        rows = [random_row(rng, PARAMS[name]) for _ in range(num_rows)]
        expected = select_rows(logits, rows)
        found = chosen(one, logits, rows)
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            assert left == right or is_at_a_border(logits[index], rows[index], left.token_id, right.token_id)


@pytest.mark.parametrize("static", [False, True])
def test_all_kinds_of_rows_in_one_step(static: bool):
    rng = np.random.default_rng(1)
    logits = random_logits(rng, 11)
    logits[3, :] = np.nan
    logits[4, 10] = np.inf
    logits[5, :] = -np.inf
    logits[8, 20] = np.nan
    rows = [
        random_row(rng, params, trace=index == 9)
        for index, params in enumerate([*PARAMS.values(), *PARAMS.values()][:11])
    ]
    rows[4] = structs.replace(rows[4], mask=None)
    rows[5] = structs.replace(rows[5], mask=None)
    rows[6] = structs.replace(rows[6], mask=bitmask.allocate(1, VOCAB_SIZE)[0])
    hidden = np.ones(VOCAB_SIZE, dtype=np.bool_)
    hidden[20] = False
    rows[8] = structs.replace(
        rows[8], params=GREEDY, mask=bitmask.pack(hidden)
    )  # what is forbidden may be no number
    rows[10] = structs.replace(rows[10], params=replace(rows[10].params, logprobs=3))
    expected = select_rows(logits, rows)
    assert [choice.error for choice in expected[3:7]] == ["sampling_failed"] * 3 + ["no_token_allowed"]
    assert expected[8].error is None
    assert chosen(selector(static=static), logits, rows) == expected


def chain(rng: np.random.Generator, params: SamplingParams, drafts: Sequence[int | None]) -> list[SamplingRow]:
    return [
        SamplingRow(
            params=params,
            position=40 + index,
            vocab_size=VOCAB_SIZE,
            mask=bitmask.pack(rng.random(VOCAB_SIZE) < 0.3),
            draft=draft,
        )
        for index, draft in enumerate(drafts)
    ]


SAMPLED = SamplingParams(temperature=1.1, seed=2**63 + 5)
NEVER = -1
GOLDEN_GREEDY = [950, 271, 918, 54, 195]
GOLDEN_SAMPLED = [950, 16, 918, 875, 529]


def choices_without_drafts(params: SamplingParams, num: int) -> list[int]:
    rng = np.random.default_rng(9)
    logits = random_logits(rng, num)
    return [choice.token_id for choice in select_rows(logits, chain(rng, params, [None] * num))]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("params", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("num_right", range(5))
@pytest.mark.parametrize("num_valid", [0, 2, 4])
def test_drafts_are_accepted_as_far_as_they_are_right_and_validated(
    static, params, num_right: int, num_valid: int
):
    """Rows behind the validated drafts have a draft that no choice equals, whatever the model would say."""
    own = choices_without_drafts(params, 5)
    guess = [token if index < num_right else (token + 1) % VOCAB_SIZE for index, token in enumerate(own[:4])]
    drafts: list[int | None] = [*guess[:num_valid], *[NEVER] * (4 - num_valid), None]
    rng = np.random.default_rng(9)
    logits = random_logits(rng, 5)
    rows = chain(rng, params, drafts)
    num_accepted = min(num_right, num_valid)
    found = chosen(selector(static=static), logits, rows)
    assert [choice.token_id for choice in found] == own[: num_accepted + 1] + [-1] * (4 - num_accepted)
    assert found[num_accepted + 1 :] == (UNREACHED,) * (4 - num_accepted)
    assert found == select_rows(logits, rows)


def test_goldens():
    """Written down, so that reference and device cannot change together."""
    assert choices_without_drafts(GREEDY, 5) == GOLDEN_GREEDY
    assert choices_without_drafts(SAMPLED, 5) == GOLDEN_SAMPLED
    rng = np.random.default_rng(9)
    logits = random_logits(rng, 5)
    args = abi.SelectArgs(
        masks=torch.from_numpy(np.stack([row.mask for row in chain(rng, SAMPLED, [None] * 5)])),
        modes=torch.tensor([3, 1, 0, 3, 8]),
        temperatures=torch.full((5,), 1 / 1.1, dtype=torch.float64),
        top_ks=torch.zeros(5, dtype=torch.int64),
        top_ps=torch.ones(5, dtype=torch.float64),
        min_ps=torch.zeros(5, dtype=torch.float64),
        seeds=torch.full((5,), 5 - 2**63),
        positions=torch.arange(40, 45),
        chains=torch.tensor([[0, 1, 2], [3, 4, 0]]),
        drafts=torch.tensor([[GOLDEN_SAMPLED[0], GOLDEN_GREEDY[1]], [GOLDEN_SAMPLED[3], abi.NO_DRAFT]]),
        draft_counts=torch.tensor([1, 1]),
        masked=torch.tensor([0, 1, 3]),
        sampled=torch.tensor([0, 3]),
        truncated=torch.tensor([], dtype=torch.int64),
    )
    result = select(torch.from_numpy(logits), args, VOCAB_SIZE)
    assert result.tokens.tolist() == [
        [
            GOLDEN_SAMPLED[0],
            GOLDEN_GREEDY[1],
            abi.NOT_REACHED,
        ],  # one draft is validated, though the second is right
        [GOLDEN_SAMPLED[3], abi.NO_TOKEN_ALLOWED, abi.NOT_REACHED],
    ]
    assert result.counts.tolist() == [2, 2]


def test_a_step_is_one_selection_whatever_its_rows_ask_for(monkeypatch):
    calls = []
    monkeypatch.setattr(selector_file, "select", lambda *args: calls.append(args) or select(*args))
    rng = np.random.default_rng(6)
    kinds = ("greedy", "sampled", "top k", "penalties", "bias")
    rows = [*chain(rng, SAMPLED, [7, 8, None]), *(random_row(rng, PARAMS[name]) for name in kinds)]
    rows[-1] = structs.replace(rows[-1], mask=None)
    logits = random_logits(rng, len(rows))
    assert chosen(selector(), logits, rows) == select_rows(logits, rows)
    assert len(calls) == 1


def test_the_bits_of_free_rows_are_not_looked_at():
    """Rows without a bit would forbid everything; nothing is taken apart for rows of this mode."""
    rng = np.random.default_rng(8)
    logits = random_logits(rng, 3)
    rows = [structs.replace(random_row(rng, PARAMS["greedy"]), mask=None) for _ in range(3)]
    arrays = select_arrays(rows, plan_rows(rows, on_device=True), 3, static_drafts=None)
    masks = torch.from_numpy(bitmask.allocate(3, VOCAB_SIZE))
    args = abi.SelectArgs(masks, *map(torch.from_numpy, arrays))
    assert args.masked.numel() == 0
    found = select(torch.from_numpy(logits), args, VOCAB_SIZE)
    assert found.tokens[:, 0].tolist() == logits[:, :VOCAB_SIZE].argmax(axis=1).tolist()


def test_the_random_number_is_the_same_bit_for_bit():
    seeds = [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15]
    positions = [0, 1, 2, 8191, 2**31]
    pairs = [(seed, position) for seed in seeds for position in positions]
    found = device_uniform(
        torch.from_numpy(np.array([seed for seed, _ in pairs], dtype=np.uint64).view(np.int64)),
        torch.tensor([position for _, position in pairs]),
    )
    assert found.tolist() == [uniform(*pair) for pair in pairs]


def test_the_step_abi_is_version_1():
    """What a step is called with is a contract: another order, name or meaning is another version."""
    assert abi.STEP_ABI_VERSION == 1
    assert abi.ForwardArgs._fields == ("token_ids", "positions", "slots", "logits_at", "row_slots")
    assert abi.SelectArgs._fields == (
        *("masks", "modes", "temperatures", "top_ks", "top_ps", "min_ps", "seeds", "positions"),
        *("chains", "drafts", "draft_counts", "masked", "sampled", "truncated"),
    )
    assert abi.StepResult._fields == ("tokens", "counts")
    assert [(mode.name, int(mode)) for mode in abi.RowMode] == [
        ("MASKED", 1),
        ("SAMPLED", 2),
        ("TRUNCATED", 4),
        ("REFUSED", 8),
    ]
    assert (abi.NOT_REACHED, abi.NO_TOKEN_ALLOWED, abi.SAMPLING_FAILED, abi.NO_DRAFT) == (-1, -2, -3, -1)


def test_rows_that_do_not_fit_together_are_refused():
    rng = np.random.default_rng(2)
    row = random_row(rng, PARAMS["greedy"])
    short = structs.replace(row, mask=bitmask.all_allowed(10))
    with pytest.raises(ValueError, match="mask of 1 words"):
        selector().prepare([short])
    with pytest.raises(ValueError, match="several vocabularies"):
        selector().prepare([row, structs.replace(row, vocab_size=10)])
    with pytest.raises(ValueError, match="8 logits for a vocabulary of 1000"):
        chosen(selector(), np.zeros((1, 8), np.float32), [row])


def test_a_parameter_that_the_device_does_not_know_is_the_hosts():
    rng = np.random.default_rng(4)
    rows = [random_row(rng, {"temperature": 1.0, **more}) for more in ({"typical_p": 0.5}, {}, {"logprobs": 0})]
    logits = random_logits(rng, 3)
    assert selector().prepare(rows).plan.on_host == [[0], [2]]
    assert chosen(selector(), logits, rows) == select_rows(logits, rows)


@pytest.mark.parametrize(("device", "expected"), [("cpu", False), ("mps", False), ("cuda", True)])
def test_some_devices_leave_all_rows_to_the_reference(device: str, expected: bool):
    assert chooses_well(torch.device(device)) is expected
    rng = np.random.default_rng(3)
    rows = [random_row(rng, PARAMS[name]) for name in ("top p", "sampled", "greedy", "bias")]
    logits = random_logits(rng, 4)
    one = selector(on_device=expected)
    assert bool(one.prepare(rows).plan.on_host) is not expected
    assert chosen(one, logits, rows) == select_rows(logits, rows)
