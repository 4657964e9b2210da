"""The engine on a torch model: the fused step says what the host path says, and no logits come back for it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

torch = pytest.importorskip("torch", reason="needs the extra torch")

from interlock.config import EngineConfig, SpeculativeConfig, TorchConfig  # noqa: E402
from interlock.constraints import bitmask  # noqa: E402
from interlock.constraints.cache import GrammarCache  # noqa: E402
from interlock.constraints.compiler import GrammarCompiler  # noqa: E402
from interlock.constraints.providers.llguidance import LLGuidanceProvider  # noqa: E402
from interlock.core.constraint import LoweredConstraint  # noqa: E402
from interlock.core.engine import EngineRequest, ThinkingBudget  # noqa: E402
from interlock.core.sampling import SamplingParams  # noqa: E402
from interlock.engine.core import EngineCore  # noqa: E402
from interlock.engine.drafting.registry import create_speculator  # noqa: E402
from interlock.runners.base import ForwardError, StepBatch  # noqa: E402
from interlock.runners.torch import selector  # noqa: E402
from interlock.runners.torch.runner import TorchRunner  # noqa: E402
from interlock.sampling.base import SamplingRow  # noqa: E402
from interlock.tokenization.byte_tokenizer import byte_tokenizer  # noqa: E402

TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
NGRAM = SpeculativeConfig(methods=("ngram", "skeleton"), num_speculative_tokens=4, adaptive=False)


def grammar(lark: str) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark)


CONSTRAINTS = {
    "free": None,
    "regex": grammar("start: /[a-c]{3,12}(, [a-c]{2,9}){0,3}/"),
    "json": grammar(
        'start: %json {"type": "array", "items": {"enum": ["ab", "abc", 1]}, "minItems": 3, "maxItems": 5}'
    ),
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "seeded": SamplingParams(temperature=0.9, seed=2**63 + 11),
    "cut": SamplingParams(temperature=1.1, seed=5, top_p=0.8, top_k=40, min_p=0.001),
    "penalised": SamplingParams(
        temperature=1.0, seed=5, frequency_penalty=0.4, presence_penalty=0.2, repetition_penalty=1.1
    ),
    "biased": SamplingParams(temperature=0.0, repetition_penalty=1.3, logit_bias=((ord("b"), 3.0),)),
}


def requests() -> list[EngineRequest]:
    close = tuple(TOKENIZER.encode("</think>"))
    return [
        EngineRequest(
            request_id=f"{kind}-{way}",
            prompt_ids=tuple(TOKENIZER.encode(f'{kind} {way}: ["ab", "abc", 1] abcabcabc')),
            sampling=sampling,
            max_tokens=30,
            stop_ids=VOCABULARY.stop_ids,
            constraint=constraint,
            thinking=ThinkingBudget(max_tokens=3, close_ids=close)
            if (kind, way) == ("free", "seeded")
            else None,
        )
        for kind, constraint in CONSTRAINTS.items()
        for way, sampling in SAMPLINGS.items()
    ]


@pytest.fixture(scope="module")
def compiler() -> Iterator[GrammarCompiler]:
    made = GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))
    for constraint in filter(None, CONSTRAINTS.values()):
        made.prepare(constraint).result(30)
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(random_model) -> Path:
    return random_model("Qwen3Config", head_dim=16, vocab_size=VOCABULARY.size + 3, initializer_range=0.2)


def config_of(
    folder: Path, *, static_shapes: bool, speculative: SpeculativeConfig | None = None, fused: bool = True
) -> EngineConfig:
    return EngineConfig(
        model=folder,
        slots=6,
        context_tokens=160,
        max_batch_tokens=128,
        mask_threads=1,
        speculative=speculative,
        torch=TorchConfig(device="cpu", threads=1, static_shapes=static_shapes, fused=fused),
    )


def said(config: EngineConfig, compiler: GrammarCompiler, *, preempt_every: int = 0) -> dict[str, Any]:
    runner = TorchRunner(config, max_default_context_tokens=8192)
    speculator = create_speculator(config, runner.info, TOKENIZER, lambda *_: runner)
    core = EngineCore(runner, compiler, VOCABULARY, config, speculator=speculator)
    for request in requests():
        core.submit(request)
    outputs: dict[str, Any] = defaultdict(list)
    step = 0
    while not core.is_empty:
        step += 1
        for index, request in enumerate(requests()):
            if preempt_every and (step + index) % preempt_every == 0:
                core.preempt(request.request_id)
        for output in core.step():
            assert output.failure is None
            outputs[output.request_id] += [
                *output.token_ids,
                *([output.finish_reason] if output.finish_reason else []),
            ]
        core.check()
    assert core.stats().num_accepted_tokens > 0 or speculator is None
    runner.close()
    return outputs


@pytest.fixture(scope="module")
def on_host(folder: Path, compiler: GrammarCompiler) -> dict[str, Any]:
    return said(config_of(folder, static_shapes=False, fused=False), compiler)


def no_logits(*_: object) -> None:
    raise AssertionError("logits were asked for on the host")


@pytest.mark.parametrize("speculative", [None, NGRAM], ids=["one by one", "drafts"])
@pytest.mark.parametrize("static_shapes", [False, True], ids=["as they come", "fixed shapes"])
def test_the_fused_step_says_what_the_host_path_says(
    folder, compiler, on_host, monkeypatch, static_shapes: bool, speculative
):
    assert len(on_host) == len(requests())
    assert len({tuple(tokens) for tokens in on_host.values()}) > 10
    monkeypatch.setattr(selector, "select_rows", no_logits)
    config = config_of(folder, static_shapes=static_shapes, speculative=speculative)
    assert said(config, compiler) == on_host


@pytest.mark.parametrize("prefix_cache", [False, True])
def test_preempted_requests_go_on_with_the_same_text(folder, compiler, on_host, prefix_cache: bool):
    """What was computed is computed again, in other chunks, or found in a slot."""
    config = replace(config_of(folder, static_shapes=prefix_cache), prefix_cache=prefix_cache)
    assert said(config, compiler, preempt_every=7) == on_host


# ---- one step


@pytest.fixture
def runner(folder: Path) -> Iterator[TorchRunner]:
    made = TorchRunner(config_of(folder, static_shapes=False), max_default_context_tokens=8192)
    yield made
    made.close()


def batch_at(slot: int, *token_ids: int) -> StepBatch:
    num = len(token_ids)
    return StepBatch(
        token_ids=np.array(token_ids, dtype=np.int32),
        positions=np.arange(num, dtype=np.int32),
        slots=np.full(num, slot, dtype=np.int32),
        logits_at=np.array([num - 1], dtype=np.int32),
    )


def row(mask: bitmask.Mask | None = None, **params: Any) -> SamplingRow:
    sampling = SamplingParams(**{"temperature": 0.0, **params})
    return SamplingRow(params=sampling, position=0, vocab_size=VOCABULARY.size, mask=mask)


def test_masks_are_staged_while_the_pass_runs(runner, monkeypatch):
    """The pass ends only once a mask was staged, so a runner that waited for it first would never end."""
    staged = threading.Event()
    compute, stage = runner._forward.run, runner._selector._stage_of(VOCABULARY.size).stage

    def slow_pass(*args: Any) -> Any:
        assert staged.wait(30)
        return compute(*args)

    def seen_stage(masks: Any) -> Any:
        result = stage(masks)
        staged.set()
        return result

    monkeypatch.setattr(runner._forward, "run", slow_pass)
    monkeypatch.setattr(runner._selector._stage, "stage", seen_stage)
    mask = bitmask.allocate(1, VOCABULARY.size)[0]
    bitmask.set_only(mask, [77])
    (choice,) = runner.launch(batch_at(0, 5, 6)).select([row(mask)]).choices
    assert choice.token_id == 77


def test_logits_come_to_the_host_for_logprobs_only(runner, monkeypatch):
    assert runner.launch(batch_at(0, 5)).select([row(logprobs=2)]).choices[0].logprob is not None
    monkeypatch.setattr(selector, "select_rows", no_logits)
    assert runner.launch(batch_at(1, 5)).select([row(temperature=0.8, seed=3)]).choices[0].error is None
    with pytest.raises(AssertionError, match="logits were asked for"):
        runner.launch(batch_at(2, 5)).select([row(logprobs=2)])


def test_a_failed_staging_ends_the_pass_and_the_runner_goes_on(runner, monkeypatch):
    with monkeypatch.context() as patch:

        def fail(_masks: object) -> None:
            raise RuntimeError("no memory that is pinned")

        patch.setattr(runner._selector._stage_of(VOCABULARY.size), "stage", fail)
        with pytest.raises(ForwardError, match="no memory that is pinned"):
            runner.launch(batch_at(0, 5)).select([row()])
    assert runner.launch(batch_at(0, 5)).select([row()]).choices[0].error is None


def test_a_mask_of_another_vocabulary_ends_the_pass(runner):
    with pytest.raises(ValueError, match="mask of 1 words"):
        runner.launch(batch_at(0, 5)).select([row(bitmask.all_allowed(32))])
    assert runner.launch(batch_at(1, 5)).select([row()]).choices[0].error is None


def test_an_accelerator_that_failed_ends_the_worker(runner, monkeypatch):
    """What the engine's edges hold, ``Exception``, would go on with a device that does nothing more."""

    def lost(*_: object) -> None:
        raise torch.AcceleratorError("an illegal memory access was encountered")

    monkeypatch.setattr(runner._forward, "run", lost)
    with pytest.raises(SystemExit, match="illegal memory access"):
        runner.launch(batch_at(0, 5)).discard()


def test_draft_rows_of_a_step_are_one_chain(folder):
    config = replace(config_of(folder, static_shapes=True), speculative=NGRAM)
    runner = TorchRunner(config, max_default_context_tokens=8192)
    own: list[int] = []
    for _ in range(4):
        runner.truncate(0, 0)
        (choice,) = runner.launch(batch_at(0, 9, 8, *own)).select([row()]).choices
        own.append(choice.token_id)
    runner.truncate(0, 0)
    runner.launch(batch_at(0, 9)).discard()
    block = StepBatch(
        token_ids=np.array([8, own[0], own[1], 3], dtype=np.int32),
        positions=np.arange(1, 5, dtype=np.int32),
        slots=np.zeros(4, dtype=np.int32),
        logits_at=np.arange(4, dtype=np.int32),
    )
    drafts = [
        structs.replace(row(), draft=draft, position=index)
        for index, draft in enumerate([own[0], own[1], 3, None])
    ]
    choices = runner.launch(block).select(drafts).choices
    assert [choice.token_id for choice in choices] == [*own[:3], -1]
    runner.close()
