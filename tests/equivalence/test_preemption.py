"""A request says the same however often it loses its slot, and whatever is left in the cache meanwhile."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest, ThinkingBudget
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.base import RunnerCapabilities
from interlock.runners.fake import FakeRunner
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.equivalence.outputs import Outputs, told

TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
SCHEMA = json.dumps(
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 6}}, "required": ["a"]}
)

CLOSE_IDS = tuple(TOKENIZER.encode("</think>"))
SYSTEM = "The same instructions for everybody. "


def grammar(lark: str) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark)


CONSTRAINTS: dict[str, LoweredConstraint | None] = {
    "free": None,
    "json": grammar(f"start: %json {SCHEMA}"),
    "regex": grammar("start: /[a-z]{3,12}(, [a-z]{2,9}){0,3}/"),
    "literal": grammar('start: "<tool>" /[0-9]{4}/ "</tool>"'),
    "free-thinking": None,
    "bound-thinking": grammar("start: /[a-z ]{0,40}/ </think> /[0-9]{4}/"),
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0, logprobs=2),
    "seeded": SamplingParams(
        temperature=1.0, seed=11, top_p=0.9, frequency_penalty=0.4, repetition_penalty=1.1
    ),
}


def requests() -> list[EngineRequest]:
    made = []
    for kind, constraint in CONSTRAINTS.items():
        for way, sampling in SAMPLINGS.items():
            name = f"{kind}-{way}"
            budget = ThinkingBudget(max_tokens=5, close_ids=CLOSE_IDS) if "thinking" in kind else None
            made.append(
                EngineRequest(
                    request_id=name,
                    prompt_ids=tuple(TOKENIZER.encode(SYSTEM + name)),
                    sampling=sampling,
                    max_tokens=30,
                    stop_ids=VOCABULARY.stop_ids,
                    constraint=constraint,
                    thinking=budget,
                    report_accepting=True,
                )
            )
    return made


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    compiler = GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))
    for request in requests():
        if request.constraint is not None:
            compiler.prepare(request.constraint).result(30)
    return compiler


def run(
    compiler: GrammarCompiler,
    *,
    disturb: Callable[[EngineCore, int], None] = lambda _core, _step: None,
    slots: int = 12,
    budget: int = 512,
    capabilities: RunnerCapabilities | None = None,
    only: str | None = None,
    **config: Any,
) -> tuple[Outputs, EngineCore]:
    runner = FakeRunner(
        VOCABULARY.size, slots=slots, max_batch_tokens=budget, context_tokens=400, capabilities=capabilities
    )
    settings = EngineConfig(model=Path("none"), mask_threads=1, **config)
    speculator = create_speculator(settings, runner.info, TOKENIZER, lambda _config, _tokenizer: runner)
    core = EngineCore(runner, compiler, VOCABULARY, settings, speculator=speculator)
    for request in requests():
        if only in (None, request.request_id):
            core.submit(request)
    outputs: Outputs = defaultdict(list)
    step = 0
    while not core.is_empty:
        disturb(core, step)
        for output in core.step():
            outputs[output.request_id].append(output)
        core.check()
        step += 1
        assert step < 20_000
    return outputs, core


@pytest.fixture(scope="module")
def expected(compiler: GrammarCompiler) -> dict[str, list[Any]]:
    solo: dict[str, list[Any]] = {}
    for request in requests():
        outputs, _ = run(
            compiler,
            only=request.request_id,
            slots=1,
            prefix_cache=False,
            fairness_tokens=0,
            forced_tokens=False,
        )
        solo |= told(outputs)
    return solo


def test_the_expected_outputs_are_not_trivial(expected):
    assert len(expected) == len(requests()) >= 12
    assert all(len(those[0]) >= 5 and those[3] is None for those in expected.values())
    for name, (ids, *_) in expected.items():
        if "thinking" in name:
            assert "</think>" in TOKENIZER.decode(ids)


@pytest.mark.parametrize("every", [1, 2, 3, 5, 7])
@pytest.mark.parametrize(
    ("slots", "budget", "prefix_cache"),
    [(12, 1024, True), (12, 1024, False), (3, 512, True), (3, 512, False), (4, 9, True)],
)
def test_preempted_at_every_kth_step(
    compiler, expected, every: int, slots: int, budget: int, prefix_cache: bool
):
    def disturb(core: EngineCore, step: int) -> None:
        for i, request in enumerate(requests()):
            if (step + i) % every == 0:
                core.preempt(request.request_id)

    outputs, core = run(
        compiler, disturb=disturb, slots=slots, budget=budget, prefix_cache=prefix_cache, fairness_tokens=0
    )
    assert told(outputs) == expected
    assert core.stats().num_preempted > 12


@pytest.mark.parametrize("forced_tokens", [True, False])
@pytest.mark.parametrize(
    ("methods", "adaptive"),
    [
        (("ngram",), False),
        (("skeleton",), False),
        (("skeleton", "ngram"), False),
        (("skeleton", "ngram"), True),  # many steps without a draft between others
    ],
)
@pytest.mark.parametrize(("slots", "budget"), [(12, 1024), (3, 64)])
@pytest.mark.parametrize("every", [2, 5])
def test_preempted_with_drafts_in_flight(
    compiler, expected, every: int, slots: int, budget: int, methods, adaptive: bool, forced_tokens: bool
):
    def disturb(core: EngineCore, step: int) -> None:
        for i, request in enumerate(requests()):
            if (step + i) % every == 0:
                core.preempt(request.request_id)

    speculative = SpeculativeConfig(methods=methods, num_speculative_tokens=7, adaptive=adaptive)
    outputs, core = run(
        compiler,
        disturb=disturb,
        slots=slots,
        budget=budget,
        speculative=speculative,
        forced_tokens=forced_tokens,
    )
    assert told(outputs) == expected
    assert core.stats().num_draft_tokens > 0 or adaptive or "ngram" not in methods


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(("slots", "saved"), [(1, 30_000), (2, 1 << 20), (3, 10_000)])
def test_preempted_and_restored_from_the_hosts_memory(compiler, expected, every: int, slots: int, saved: int):
    def disturb(core: EngineCore, step: int) -> None:
        for i, request in enumerate(requests()):
            if (step + i) % every == 0:
                core.preempt(request.request_id)

    speculative = SpeculativeConfig(methods=("ngram",), num_speculative_tokens=7, adaptive=False)
    outputs, core = run(
        compiler,
        disturb=disturb,
        slots=slots,
        fairness_tokens=4,
        prompt_cache_bytes=saved,
        speculative=speculative,
    )
    assert told(outputs) == expected
    assert core.stats().num_states_restored > 0 or saved == 10_000  # room for one or two


@pytest.mark.parametrize("fairness_tokens", [1, 4])
@pytest.mark.parametrize("capabilities", [None, RunnerCapabilities()])
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_turns_are_taken(compiler, expected, slots: int, fairness_tokens: int, capabilities):
    outputs, _ = run(compiler, slots=slots, fairness_tokens=fairness_tokens, capabilities=capabilities)
    assert told(outputs) == expected


@pytest.mark.parametrize("max_kv_tokens", [90, 150, 300])
def test_the_cache_is_smaller_than_what_runs(compiler, expected, max_kv_tokens: int):
    outputs, core = run(compiler, max_kv_tokens=max_kv_tokens, fairness_tokens=0)
    assert told(outputs) == expected
    assert core.stats().num_preempted > 0 or max_kv_tokens == 90  # room for one at a time


@pytest.mark.parametrize("every", [2, 3, 7])
def test_paused_and_unpaused(compiler, expected, every: int):
    names = [request.request_id for request in requests()]

    def disturb(core: EngineCore, step: int) -> None:
        halves = (names[::2], names[1::2])
        core.unpause(halves[step // every % 2])
        core.pause(halves[(step // every + 1) % 2])

    assert told(run(compiler, disturb=disturb)[0]) == expected


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_resumed_after_output_that_was_delivered(compiler, expected, share: float):
    runner = FakeRunner(VOCABULARY.size, slots=4, context_tokens=400)
    core = EngineCore(runner, compiler, VOCABULARY, EngineConfig(model=Path("none"), mask_threads=1))
    delivered = {}
    for request in requests():
        ids = expected[request.request_id][0]
        delivered[request.request_id] = ids[: int(share * len(ids))]
        core.submit(replace(request, resume_ids=tuple(delivered[request.request_id])))
    outputs: Outputs = defaultdict(list)
    while not core.is_empty:
        for output in core.step():
            outputs[output.request_id].append(output)
        core.check()
    for name, (ids, logprobs, *end) in told(outputs).items():
        assert delivered[name] + ids == expected[name][0]
        assert logprobs == expected[name][1][len(expected[name][1]) - len(logprobs) :]
        assert end == expected[name][2:]
    assert core.stats().num_resumed == (len(requests()) if share else 0)
