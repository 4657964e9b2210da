"""Forced tokens and drafts change nothing in what a real model says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.config import EngineConfig, LlamaCppConfig, TorchConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.base import ModelRunner
from interlock.runners.registry import create_runner
from interlock.tokenization.load import describe
from tests.equivalence.drafted import ALL, CONSTRAINTS, speculative


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
