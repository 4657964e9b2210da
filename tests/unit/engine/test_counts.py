"""What requests are told of themselves adds up to what the worker counts."""

from __future__ import annotations

import json
from pathlib import Path

from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.timings import RequestTimings
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.fake import FakeRunner
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
UNIQUE = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[ab][cd]?$"},
    "uniqueItems": True,
    "minItems": 6,
    "maxItems": 6,
}
NAMES = ("forced", "drafted", "accepted", "vetoed", "preempted")


def test_requests_and_worker_count_the_same():
    constraint = lower(ConstraintSpec(root=JsonValue(json.dumps(UNIQUE))), TOKENIZER.special_tokens)
    compiler = GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 24))
    compiler.prepare(constraint).result(30)
    config = EngineConfig(
        model=Path("none"),
        mask_threads=1,
        speculative=SpeculativeConfig(methods=("ngram",), adaptive=False, prompt_lookup_min=1),
    )
    runner = FakeRunner(TOKENIZER.vocabulary.size, slots=4, max_batch_tokens=256, context_tokens=256)
    speculator = create_speculator(config, runner.info, TOKENIZER, lambda *_: runner)
    core = EngineCore(runner, compiler, TOKENIZER.vocabulary, config, speculator=speculator)
    prompt = tuple(TOKENIZER.encode('["ac", "ad", "a", "bc"] '))
    for seed in range(4):
        core.submit(
            EngineRequest(
                request_id=f"r{seed}",
                prompt_ids=prompt,
                sampling=SamplingParams(seed=seed),
                max_tokens=100,
                stop_ids=TOKENIZER.vocabulary.stop_ids,
                constraint=constraint,
            )
        )
    told: list[RequestTimings] = []
    step = 0
    while not core.is_empty:
        told += [output.timings for output in core.step() if output.timings is not None]
        step += 1
        if step == 3:
            core.preempt("r1")
    stats = core.stats()
    sums = {name: sum(getattr(timings, f"num_{name}") for timings in told) for name in NAMES}
    assert sums == {
        "forced": stats.num_forced_tokens,
        "drafted": stats.num_draft_tokens,
        "accepted": stats.num_accepted_tokens,
        "vetoed": stats.num_vetoed_tokens,
        "preempted": stats.num_preempted,
    }
    assert len(told) == 4
    assert all(sums.values()), sums
