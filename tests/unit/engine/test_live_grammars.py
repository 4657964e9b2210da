"""More grammars alive than the cache holds: none is lost, none is another's."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.runners.fake import FakeRunner
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
NUM_SCHEMAS = 40


def schema(number: int) -> LoweredConstraint:
    value = {
        "type": "object",
        "properties": {f"key{number}": {"const": f"value {number}"}, "n": {"enum": [number, number + 100]}},
        "required": [f"key{number}", "n"],
        "additionalProperties": False,
    }
    lark = f"start: %json {json.dumps(value | {'x-guidance': {'whitespace_flexible': False}})}"
    return LoweredConstraint(provider="llguidance", grammar=lark, key=f"schema {number}")


@pytest.mark.parametrize("preempt", [False, True])
@pytest.mark.parametrize("slots", [3, 2 * NUM_SCHEMAS])
def test_forty_live_schemas_and_a_cache_of_two(slots: int, preempt: bool):
    provider = LLGuidanceProvider(TOKENIZER)
    max_bytes = 2 * provider.compile(schema(0).grammar).num_bytes + 1
    cache = GrammarCache(max_bytes)
    compiler = GrammarCompiler(provider, cache)
    core = EngineCore(
        FakeRunner(TOKENIZER.vocabulary.size, slots=slots, context_tokens=200),
        compiler,
        TOKENIZER.vocabulary,
        EngineConfig(model=Path("none"), mask_threads=1, forced_tokens=False),
    )
    asked = [number % NUM_SCHEMAS for number in range(2 * NUM_SCHEMAS)]
    for index, number in enumerate(asked):
        compiler.prepare(schema(number)).result(30)
        core.submit(
            EngineRequest(
                request_id=f"r{index}",
                prompt_ids=(1, 2, index),
                sampling=SamplingParams(seed=index),
                max_tokens=60,
                constraint=schema(number),
            )
        )
    said: dict[str, list[int]] = {f"r{index}": [] for index in range(len(asked))}
    step = 0
    while not core.is_empty:
        if preempt:
            core.preempt(f"r{step % len(asked)}")
        for output in core.step():
            said[output.request_id] += output.token_ids
            assert output.finish_reason in (None, "stop"), output
        core.check()
        step += 1
    for index, number in enumerate(asked):
        value = json.loads(TOKENIZER.decode(said[f"r{index}"]))
        assert value[f"key{number}"] == f"value {number}"
        assert value["n"] in (number, number + 100)
        assert len(value) == 2
    assert cache.num_evictions >= NUM_SCHEMAS // 2
    gc.collect()
    compiler.prepare(schema(0)).result(30)
    cache.put("another", provider.compile(schema(1).grammar))
    assert cache.num_bytes <= max_bytes + provider.compile(schema(0).grammar).num_bytes
