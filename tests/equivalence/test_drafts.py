"""Forced tokens and drafts change nothing in what is said: not greedily, not seeded, not in distribution."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.config import EngineConfig, LlamaCppConfig, SpeculativeConfig, SpeculativeMethod, TorchConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest, ThinkingBudget
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.base import ModelRunner, StepBatch
from interlock.runners.fake import FakeRunner, Prefix, UniformLogits
from interlock.runners.registry import create_runner
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe

TOKENIZER = byte_tokenizer()
SIZE = TOKENIZER.vocabulary.size
CLOSE_IDS = {
    "thinking": tuple(TOKENIZER.encode("</think>")),
    "free-thinking": tuple(TOKENIZER.encode("</think>")),
    "marker-thinking": tuple(TOKENIZER.encode("</think>end<tool_call>")),
    "free-marker-thinking": tuple(TOKENIZER.encode("</think>end<tool_call>")),
}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 8},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
ALL: tuple[SpeculativeMethod, ...] = ("skeleton", "ngram")


class HabitLogits:
    """A model with habits: one letter follows another nearly always, so that its text repeats itself."""

    def __init__(self, seed: int = 0, strength: float = 7.0) -> None:
        self._base = UniformLogits(SIZE, seed)
        self._strength = np.float32(strength)

    def row(self, prefix: Prefix) -> np.ndarray[Any, np.dtype[np.float32]]:
        values = self._base.row(prefix).copy()
        last = prefix.tokens[prefix.length - 1]
        values[97 + (last * 7 + 3) % 9] += self._strength
        values[ord('"')] += self._strength - 2
        return values


def grammar(lark: str, literals: tuple[str, ...] = ()) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark, literals=literals)


LITERALS = ("city", "unit", "days", "celsius", "fahrenheit")
CONSTRAINTS: dict[str, LoweredConstraint | None] = {
    "free": None,
    "json": grammar(f"start: %json {json.dumps(SCHEMA)}", LITERALS),
    "call": grammar(
        'start: <tool_call> "\\n{\\"name\\": \\"weather\\", \\"arguments\\": " args "}\\n" </tool_call>\n'
        f"args: %json {json.dumps(SCHEMA)}",
        LITERALS,
    ),
    "guarded": lower(
        ConstraintSpec(
            root=JsonValue(
                schema=json.dumps(
                    {
                        "type": "array",
                        "items": {"type": "string", "pattern": "^[a-c]{1,2}$"},
                        "uniqueItems": True,
                        "minItems": 4,
                        "maxItems": 6,
                    }
                )
            )
        ),
        TOKENIZER.special_tokens,
    ),
    "regex": grammar("start: /[a-z]{3,12}(, [a-z]{2,9}){0,3}/"),
    "choice": grammar('start: "left hand" | "left foot" | "right"', ("left hand", "left foot", "right")),
    "constant": grammar('start: "always the same"'),
    "thinking": grammar("start: /[a-z ]{0,40}/ </think> /[0-9]{4}/"),
    "free-thinking": None,
    "marker-thinking": grammar('start: /[a-z ]{0,40}/ </think> "end" <tool_call> /[0-9]{4}/'),
    "free-marker-thinking": None,
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "seeded": SamplingParams(temperature=0.9, seed=11, top_p=0.9),
    "penalised": SamplingParams(
        temperature=1.0, seed=5, frequency_penalty=0.4, presence_penalty=0.2, repetition_penalty=1.1
    ),
    "biased": SamplingParams(temperature=0.0, repetition_penalty=1.3, logit_bias=((ord("b"), 3.0),)),
    "logprobs": SamplingParams(temperature=0.7, seed=3, logprobs=3),
}
LIMITS = {
    "seeded": TokenLimits(min_tokens=8, banned=(tuple(b"ab"), tuple(b"x"))),
    "biased": TokenLimits(suppressed=TOKENIZER.vocabulary.stop_ids, banned=(tuple(b"bc"),)),
}


def requests() -> list[EngineRequest]:
    made = []
    for kind, constraint in CONSTRAINTS.items():
        budget = ThinkingBudget(max_tokens=6, close_ids=CLOSE_IDS[kind]) if kind in CLOSE_IDS else None
        for way, sampling in SAMPLINGS.items():
            name = f"{kind}-{way}"
            stop_ids = TOKENIZER.vocabulary.stop_ids + ((ord("e"),) if way == "penalised" else ())
            made.append(
                EngineRequest(
                    request_id=name,
                    prompt_ids=tuple(
                        TOKENIZER.encode(f'{name}: {{"city": "abcab", "unit": "celsius"}} abcabc')
                    ),
                    sampling=sampling,
                    max_tokens=[9, 25, 60][len(made) % 3],
                    stop_ids=stop_ids,
                    constraint=constraint,
                    limits=LIMITS.get(way, TokenLimits()),
                    thinking=budget,
                    report_accepting=way in ("seeded", "biased"),
                )
            )
    return made


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    compiler = GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))
    for constraint in filter(None, CONSTRAINTS.values()):
        compiler.prepare(constraint).result(30)
    return compiler


Outputs = dict[str, list[EngineOutput]]


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


def told(outputs: Outputs) -> dict[str, list[Any]]:
    """Everything but how tokens are cut into outputs."""
    return {
        name: [
            [token_id for output in those for token_id in output.token_ids],
            [logprob for output in those for logprob in output.logprobs],
            those[-1].finish_reason,
            those[-1].failure,
            those[-1].is_accepting,
        ]
        for name, those in sorted(outputs.items())
    }


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


def speculative(*methods: SpeculativeMethod, tokens: int = 7, adaptive: bool = False) -> SpeculativeConfig:
    model = Path("small") if "draft_model" in methods else None
    return SpeculativeConfig(
        methods=methods, num_speculative_tokens=tokens, adaptive=adaptive, model=model, prompt_lookup_min=1
    )


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


@pytest.mark.model
def test_a_model_says_the_same(demo_model: Path, model_path: Path):
    tokenizer = describe(demo_model).tokenizer
    compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
    config = EngineConfig(
        model=model_path,
        slots=3,
        context_tokens=192,
        max_batch_tokens=64,
        llama_cpp=LlamaCppConfig(threads=1),
        torch=TorchConfig(device="cpu", threads=1),
    )
    runner = create_runner(config, tokenizer)
    made = real_requests(tokenizer)
    for request in made:
        if request.constraint is not None:
            compiler.prepare(request.constraint).result(30)
    try:
        plain = real_outputs(runner, compiler, tokenizer, replace(config, forced_tokens=False), made)
        for changes in ({}, {"speculative": speculative(*ALL)}):
            found = real_outputs(runner, compiler, tokenizer, replace(config, **changes), made)
            assert found == plain
    finally:
        runner.close()
        compiler.close()


def real_requests(tokenizer: Tokenizer) -> list[EngineRequest]:
    prompt = "<|im_start|>user\nSay abc abc abc, or the weather in Paris.<|im_end|>\n<|im_start|>assistant\n"
    kinds = ("free", "json", "regex")
    samplings = (SamplingParams(temperature=0.0), SamplingParams(temperature=0.8, seed=4))
    return [
        EngineRequest(
            request_id=f"{kind}-{way}",
            prompt_ids=tuple(tokenizer.encode(prompt)),
            sampling=sampling,
            max_tokens=24,
            stop_ids=tokenizer.vocabulary.stop_ids,
            constraint=CONSTRAINTS[kind],
        )
        for kind in kinds
        for way, sampling in enumerate(samplings)
    ]


def real_outputs(
    runner: ModelRunner,
    compiler: GrammarCompiler,
    tokenizer: Tokenizer,
    config: EngineConfig,
    made: list[EngineRequest],
) -> dict[str, list[int]]:
    no_runner: Callable[..., ModelRunner] = lambda *_: runner  # noqa: E731
    speculator = create_speculator(config, runner.info, tokenizer, no_runner)
    core = EngineCore(runner, compiler, tokenizer.vocabulary, config, speculator=speculator)
    for request in made:
        core.submit(request)
    outputs: dict[str, list[int]] = defaultdict(list)
    while not core.is_empty:
        for output in core.step():
            assert output.failure is None
            outputs[output.request_id] += output.token_ids
        core.check()
    return outputs
