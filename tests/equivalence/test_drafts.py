"""Forced tokens and drafts change nothing in what is said: not greedily, not seeded, not in distribution."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.base import StepBatch
from interlock.runners.fake import FakeRunner
from tests.equivalence.drafted import (
    ALL,
    CONSTRAINTS,
    SAMPLINGS,
    SIZE,
    TOKENIZER,
    HabitLogits,
    requests,
    speculative,
)
from tests.equivalence.outputs import Outputs, told


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    compiler = GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))
    for constraint in filter(None, CONSTRAINTS.values()):
        compiler.prepare(constraint).result(30)
    return compiler


def run(
    compiler: GrammarCompiler,
    made: list[EngineRequest],
    *,
    slots: int = 12,
    budget: int = 512,
    draft_seed: int = 0,
    **config: Any,
) -> tuple[Outputs, EngineCore]:
    runner = FakeRunner(SIZE, logits=HabitLogits(), slots=slots, max_batch_tokens=budget, context_tokens=400)

    def draft_runner(_config: EngineConfig, _tokenizer: Tokenizer) -> FakeRunner:
        return FakeRunner(
            SIZE, logits=HabitLogits(draft_seed), slots=slots, max_batch_tokens=budget, context_tokens=400
        )

    settings = EngineConfig(model=Path("none"), mask_threads=1, max_waiting=len(made), **config)
    speculator = create_speculator(settings, runner.info, TOKENIZER, draft_runner)
    core = EngineCore(runner, compiler, TOKENIZER.vocabulary, settings, speculator=speculator)
    for request in made:
        core.submit(request)
    outputs: Outputs = defaultdict(list)
    while not core.is_empty:
        for output in core.step():
            outputs[output.request_id].append(output)
        core.check()
    if speculator is not None:
        speculator.close()
    return outputs, core


@pytest.fixture(scope="module")
def expected(compiler: GrammarCompiler) -> dict[str, list[Any]]:
    solo: dict[str, list[Any]] = {}
    for request in requests():
        outputs, _ = run(compiler, [request], slots=1, prefix_cache=False, forced_tokens=False)
        solo |= told(outputs)
    return solo


def test_the_expected_outputs_are_not_trivial(expected):
    assert CONSTRAINTS["guarded"] is not None
    assert CONSTRAINTS["guarded"].guards
    assert len(expected) == len(CONSTRAINTS) * len(SAMPLINGS)
    assert all(those[3] is None for those in expected.values())
    assert {those[2] for those in expected.values()} == {"stop", "length"}
    assert sum(len(those[0]) for those in expected.values()) > 12 * len(expected)


SHAPES = [(1, 512), (12, 512), (40, 40), (5, 11)]


@pytest.mark.parametrize(("slots", "budget"), SHAPES)
@pytest.mark.parametrize("forced_tokens", [True, False])
@pytest.mark.parametrize(
    "config",
    [
        None,
        speculative("ngram"),
        speculative("ngram", tokens=1),
        speculative("skeleton"),
        speculative("draft_model", tokens=4),
        speculative("skeleton", "ngram"),
        speculative("skeleton", "ngram", adaptive=True),
    ],
    ids=lambda config: (
        "none" if config is None else f"{'+'.join(config.methods)}-{config.num_speculative_tokens}"
    ),
)
def test_nothing_changes(compiler, expected, slots: int, budget: int, forced_tokens: bool, config):
    outputs, core = run(
        compiler, requests(), slots=slots, budget=budget, forced_tokens=forced_tokens, speculative=config
    )
    assert told(outputs) == expected
    stats = core.stats()
    assert (stats.num_forced_tokens > 0) == forced_tokens
    assert stats.num_accepted_tokens <= stats.num_draft_tokens
    if config is not None and not config.adaptive:
        assert stats.num_accepted_tokens > 0


@pytest.mark.parametrize("draft_seed", [0, 9])
def test_a_draft_model_that_says_the_same_is_right_and_another_is_not_missed(
    compiler, expected, draft_seed: int
):
    outputs, core = run(
        compiler, requests(), draft_seed=draft_seed, speculative=speculative("draft_model", tokens=5)
    )
    assert told(outputs) == expected
    assert core.stats().num_accepted_tokens > 0


@pytest.mark.parametrize("config", [None, speculative(*ALL)])
def test_outputs_of_one_step_come_one_by_one_where_acceptance_is_asked(compiler, config):
    asked = [
        replace(request, report_accepting=True) for request in requests() if request.constraint is not None
    ]
    outputs, _ = run(compiler, asked, speculative=config)
    alone, _ = run(compiler, asked, forced_tokens=False)

    def marks(those: Outputs) -> dict[str, list[tuple[tuple[int, ...], bool | None]]]:
        return {name: [(one.token_ids, one.is_accepting) for one in outputs] for name, outputs in those.items()}

    assert marks(outputs) == marks(alone)


def test_forced_tokens_need_no_steps(compiler):
    made = [request for request in requests() if request.request_id == "call-greedy"]
    _, with_forced = run(compiler, made)
    _, without = run(compiler, made, forced_tokens=False)
    assert with_forced.stats().num_steps < without.stats().num_steps / 2


def test_unseeded_sampling_keeps_its_distribution(compiler):
    """Two tokens after a prompt that makes the n-gram guess them, over 3,000 seeds, against the exact shares."""
    prompt = tuple(TOKENIZER.encode("ahcdbfgeiahcdbf"))
    made = [
        EngineRequest(
            request_id=f"r{seed}",
            prompt_ids=prompt,
            sampling=SamplingParams(temperature=2.0, top_k=4, seed=seed * 7919 + 1),
            max_tokens=2,
        )
        for seed in range(3000)
    ]
    outputs, core = run(compiler, made, slots=64, budget=1024, speculative=speculative("ngram", tokens=3))
    assert core.stats().num_accepted_tokens > 300
    counts = Counter(tuple(ids) for ids, *_ in told(outputs).values())
    shares = exact_shares(prompt, 2)
    chi_square = sum((counts[ids] - 3000 * share) ** 2 / (3000 * share) for ids, share in shares.items())
    degrees = len(shares) - 1
    assert set(counts) <= set(shares)
    assert chi_square < degrees + 4 * math.sqrt(2 * degrees)


def exact_shares(prompt: tuple[int, ...], num_tokens: int) -> dict[tuple[int, ...], float]:
    """Probability of each output under temperature 2 and top-k 4."""
    shares: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(num_tokens):
        longer = {}
        for ids, share in shares.items():
            runner = FakeRunner(SIZE, logits=HabitLogits())
            row = first_row(runner, prompt + ids)
            best = np.argsort(-row, kind="stable")[:4]
            weights = np.exp((row[best] - row[best[0]]).astype(np.float64) / 2.0)
            for token_id, weight in zip(best.tolist(), (weights / weights.sum()).tolist(), strict=True):
                longer[(*ids, token_id)] = share * weight
        shares = longer
    return shares


def first_row(runner: FakeRunner, ids: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The logits behind ``ids``."""
    batch = StepBatch(
        token_ids=np.array(ids, dtype=np.int32),
        positions=np.arange(len(ids), dtype=np.int32),
        slots=np.zeros(len(ids), dtype=np.int32),
        logits_at=np.array([len(ids) - 1], dtype=np.int32),
    )
    forward = runner.launch(batch)
    return runner.finish(batch, forward._runs, forward._number)[0]
