"""A request's output does not depend on what runs beside it, on the order of arrival, or on chunking.

The reference is a loop that computes one token of one sequence at a time, without the engine.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from interlock.config import EngineConfig, LlamaCppConfig, TorchConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.base import Provider
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.state import ConstraintState
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest, ThinkingBudget
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.engine.penalties import PenaltyState
from interlock.runners.base import ModelRunner, StepBatch
from interlock.runners.fake import FakeRunner, Faults
from interlock.runners.registry import create_runner
from interlock.sampling.base import SamplingRow
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe

GREEDY = SamplingParams(temperature=0.0)


@dataclass
class Model:
    """What both the engine and the naive loop need."""

    tokenizer: Tokenizer
    provider: Provider
    compiler: GrammarCompiler
    outputs: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Model:
        provider = LLGuidanceProvider(tokenizer)
        return cls(tokenizer, provider, GrammarCompiler(provider, GrammarCache(1 << 26)))


@pytest.fixture(scope="module")
def fake() -> Model:
    return Model.of(byte_tokenizer())


def grammar(lark: str) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark)


def one_value(value: str) -> LoweredConstraint:
    return grammar(f"start: {json.dumps(json.dumps({'only': value}))}")


def requests(model: Model, num: int) -> list[EngineRequest]:
    """Free and constrained, greedy and seeded, short and long, with and without penalties and budgets."""
    rng = random.Random(1)
    close_think = model.tokenizer.encode("</think>")
    made = []
    for i in range(num):
        sampling = SamplingParams(temperature=0.0) if i % 2 else SamplingParams(temperature=1.0, seed=i)
        if i % 3 == 0:
            sampling = replace(sampling, presence_penalty=0.3, repetition_penalty=1.2, top_p=0.9)
        constraint = [None, one_value(f"value {i}"), grammar("start: /[a-z]{3,12}(, [a-z]{2,9}){0,3}/")][i % 3]
        thinking = ThinkingBudget(max_tokens=4, close_ids=tuple(close_think)) if i % 6 == 0 else None
        made.append(
            EngineRequest(
                request_id=f"r{i}",
                prompt_ids=tuple(rng.randrange(1, 250) for _ in range(rng.choice([1, 5, 30, 90]))),
                sampling=sampling,
                max_tokens=rng.choice([5, 20, 40]),
                stop_ids=model.tokenizer.vocabulary.stop_ids,
                constraint=constraint,
                thinking=thinking,
            )
        )
    return made


def naive(model: Model, runner: ModelRunner, request: EngineRequest) -> list[int]:
    """One token at a time."""
    matcher = (
        None if request.constraint is None else model.provider.compile(request.constraint.grammar).matcher()
    )
    state = ConstraintState(matcher, thinking=request.thinking)
    penalties = PenaltyState.of(request.sampling, request.prompt_ids)
    vocabulary = model.tokenizer.vocabulary
    row = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
    output: list[int] = []
    runner.truncate(0, 0)
    ids = list(request.prompt_ids)
    for position in range(len(request.prompt_ids) + request.max_tokens - 1):
        samples = position >= len(request.prompt_ids) - 1
        forward = runner.launch(
            StepBatch(
                token_ids=np.array([ids[position]], dtype=np.int32),
                positions=np.array([position], dtype=np.int32),
                slots=np.zeros(1, dtype=np.int32),
                logits_at=np.zeros(1 if samples else 0, dtype=np.int32),
            )
        )
        if not samples:
            forward.discard()
            continue
        masked = matcher is not None or state.forced_id() is not None
        if masked:
            state.fill(row)
        (choice,) = forward.select(
            [
                SamplingRow(
                    params=request.sampling,
                    position=len(output),
                    vocab_size=vocabulary.size,
                    mask=row if masked else None,
                    output_counts={} if penalties is None else penalties.output_counts,
                    seen=None if penalties is None else penalties.seen,
                )
            ]
        ).choices
        if choice.token_id in vocabulary.stop_ids:
            break
        state.accept(choice.token_id)
        ids.append(choice.token_id)
        output.append(choice.token_id)
        if penalties is not None:
            penalties.add(choice.token_id)
        if state.is_terminated:
            break
    return output


def batched(
    model: Model,
    runner: ModelRunner,
    requests: Sequence[EngineRequest],
    *,
    joins: Sequence[int] | None = None,
    leaves: dict[str, int] | None = None,
) -> dict[str, list[EngineOutput]]:
    """Outputs of all requests. ``joins``: the step at which each arrives; ``leaves``: the step at which
    some are aborted."""
    config = EngineConfig(model=Path("none"), max_waiting=len(requests), mask_threads=1)
    core = EngineCore(runner, model.compiler, model.tokenizer.vocabulary, config)
    for request in requests:
        if request.constraint is not None:
            model.compiler.prepare(request.constraint).result(30)
    arrivals = sorted(zip(joins or [0] * len(requests), range(len(requests)), strict=True))
    outputs: dict[str, list[EngineOutput]] = defaultdict(list)
    step = 0
    while arrivals or not core.is_empty:
        while arrivals and arrivals[0][0] <= step:
            core.submit(requests[arrivals.pop(0)[1]])
        for request_id, at in (leaves or {}).items():
            if at == step:
                core.abort(request_id)
        for output in core.step():
            outputs[output.request_id].append(output)
        core.check()
        step += 1
    return outputs


def ids_of(outputs: Sequence[EngineOutput]) -> list[int]:
    return [token_id for output in outputs for token_id in output.token_ids]


def fake_runner(model: Model, *, slots: int = 8, budget: int = 512, faults: Faults | None = None) -> FakeRunner:
    return FakeRunner(model.tokenizer.vocabulary.size, slots=slots, max_batch_tokens=budget, faults=faults)


@pytest.fixture(scope="module")
def expected(fake: Model) -> dict[str, list[int]]:
    runner = fake_runner(fake, slots=1, budget=2)
    return {request.request_id: naive(fake, runner, request) for request in requests(fake, 24)}


def test_the_reference_is_not_trivial(expected: dict[str, list[int]]):
    assert len({tuple(ids) for ids in expected.values()}) == len(expected)
    assert sum(map(len, expected.values())) > 24 * 8


@pytest.mark.parametrize("budget", [2, 3, 7, 32, 512])
@pytest.mark.parametrize("slots", [1, 3, 24])
def test_any_chunking_and_any_number_of_slots_gives_the_same(fake, expected, budget: int, slots: int):
    outputs = batched(fake, fake_runner(fake, slots=slots, budget=budget), requests(fake, 24))
    assert {name: ids_of(those) for name, those in outputs.items()} == expected


@pytest.mark.parametrize("seed", range(12))
def test_any_order_with_joins_and_leaves_gives_the_same(fake, expected, seed: int):
    rng = random.Random(seed)
    shuffled = requests(fake, 24)
    rng.shuffle(shuffled)
    shuffled = [replace(request, priority=rng.randrange(2)) for request in shuffled]
    joins = [rng.randrange(40) for _ in shuffled]
    leaves = {f"r{i}": rng.randrange(60) for i in rng.sample(range(24), 6)}
    runner = fake_runner(fake, slots=rng.choice([2, 5, 9]), budget=rng.choice([8, 64]))
    outputs = batched(fake, runner, shuffled, joins=joins, leaves=leaves)
    for name, those in outputs.items():
        ids = ids_of(those)
        if those[-1].finish_reason == "abort":
            assert ids == expected[name][: len(ids)]
        else:
            assert ids == expected[name]
    assert len(outputs) >= 24 - len(leaves)


@pytest.mark.parametrize("seed", range(6))
def test_passes_that_fail_and_are_replayed_change_nothing(fake, expected, seed: int):
    rng = random.Random(seed)
    faults = Faults(fail_launches=set(rng.sample(range(400), 12)))
    outputs = batched(fake, fake_runner(fake, slots=6, budget=40, faults=faults), requests(fake, 24))
    assert len(outputs) == 24
    for name, those in outputs.items():
        ids = ids_of(those)
        assert ids == (expected[name] if those[-1].finish_reason != "error" else expected[name][: len(ids)])
    num_failed = sum(those[-1].finish_reason == "error" for those in outputs.values())
    assert num_failed <= 6


@pytest.fixture(scope="module")
def demo(demo_model: Path) -> Model:
    return Model.of(describe(demo_model).tokenizer)


def demo_requests(model: Model) -> list[EngineRequest]:
    """Eight grammars with one value each, four free chats; one of the free ones sampled."""
    made = []
    for i in range(12):
        prompt = f"<|im_start|>user\nTell me about number {i}, in short.<|im_end|>\n<|im_start|>assistant\n"
        made.append(
            EngineRequest(
                request_id=f"r{i}",
                prompt_ids=tuple(model.tokenizer.encode(prompt)),
                sampling=GREEDY if i != 11 else SamplingParams(temperature=0.8, seed=5),
                max_tokens=16,
                stop_ids=model.tokenizer.vocabulary.stop_ids,
                constraint=one_value(f"v{i}") if i < 8 else None,
            )
        )
    return made


@pytest.mark.model
def test_a_model_answers_the_same_alone_and_in_a_batch(demo: Model, model_path: Path):
    made = demo_requests(demo)

    def run(slots: int, budget: int, requests: Sequence[EngineRequest], joins: Sequence[int] | None = None):
        config = EngineConfig(
            model=model_path,
            slots=slots,
            context_tokens=128,
            max_batch_tokens=budget,
            llama_cpp=LlamaCppConfig(threads=1),
            torch=TorchConfig(device="cpu", threads=1),
        )
        runner = create_runner(config, demo.tokenizer)
        try:
            outputs = batched(demo, runner, requests, joins=joins)
        finally:
            runner.close()
        return {name: ids_of(those) for name, those in outputs.items()}

    alone = run(1, 64, made)  # one slot: one after the other
    for i in range(8):
        assert json.loads(demo.tokenizer.decode(alone[f"r{i}"])) == {"only": f"v{i}"}
    assert run(12, 64, made) == alone
    assert run(5, 64, made[::-1], joins=[3 * i % 7 for i in range(12)]) == alone
