"""What only a real vLLM shows, beside the contract of engines (``--engine vllm tests/contract/test_engine.py``), and what happens
when it is killed while it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from benchmarks.peers.vllm_server import VllmServer
from interlock.config import VllmConfig
from interlock.constraints.lowering import lower
from interlock.core.constraint import (
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    LoweredConstraint,
    Marker,
    Node,
    Sequence,
)
from interlock.core.engine import EngineOutput, EngineRequest, ThinkingBudget
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.remote.vllm import VllmEngine
from interlock.tokenization.load import describe

LIMIT_S = 240.0
PLAIN = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 50}, "b": {"type": "boolean"}}}
WEAKENED: tuple[dict[str, Any], ...] = (
    {**PLAIN, "required": ["a"], "not": {"properties": {"a": {"minimum": 3}}}},
    {**PLAIN, "required": ["a"], "if": {"properties": {"a": {"maximum": 9}}}, "then": {"required": ["b"]}},
    {**PLAIN, "required": ["a"], "dependentRequired": {"a": ["b"]}},
    {"type": "string", "pattern": "^(?!a)[a-c]{2,4}$"},
    {
        "oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}],
        "minimum": 1,
        "maximum": 60,
    },
)
THOUGHT_THEN_ANSWER = Sequence((FreeText(), Marker("<|im_start|>"), Choice(("yes", "no"))))
PROMPT = "<|im_start|>user\nTell me about {}.<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def tokenizer(demo_model: Path) -> Tokenizer:
    return describe(demo_model).tokenizer


@pytest.fixture
async def engine(vllm: VllmServer, demo_model: Path, tokenizer: Tokenizer) -> AsyncIterator[VllmEngine]:
    engine = VllmEngine(VllmConfig(urls=(vllm.url,), tokenizer=demo_model), tokenizer)
    async with asyncio.timeout(LIMIT_S):
        await engine.start()
        yield engine
        await engine.stop()


def lowered(node: Node, tokenizer: Tokenizer) -> LoweredConstraint:
    return lower(ConstraintSpec(root=node), tokenizer.special_tokens)


def request(tokenizer: Tokenizer, about: str = "Paris", **fields: Any) -> EngineRequest:
    base = EngineRequest(
        request_id=about,
        prompt_ids=tuple(tokenizer.encode(PROMPT.format(about))),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=12,
        stop_ids=tokenizer.vocabulary.stop_ids,
    )
    return replace(base, **fields)


async def collect(engine: VllmEngine, asked: EngineRequest) -> list[EngineOutput]:
    return [output async for output in engine.generate(asked)]


def ids(outputs: list[EngineOutput]) -> list[int]:
    return [token_id for output in outputs for token_id in output.token_ids]


def running(vllm: VllmServer) -> float:
    lines = httpx.get(f"{vllm.url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running{"))


async def test_constrained_answers_end_where_they_may(engine: VllmEngine, tokenizer: Tokenizer):
    for node, good in (
        (Choice(("left", "right hand")), {"left", "right hand"}),
        (Grammar('start: "a" b\nb: "bc"', "lark"), {"abc"}),
    ):
        constraint = lowered(node, tokenizer)
        await engine.prepare(constraint)
        outputs = await collect(engine, request(tokenizer, constraint=constraint, report_accepting=True))
        assert tokenizer.decode(ids(outputs)) in good
        assert (outputs[-1].finish_reason, outputs[-1].is_accepting) == ("stop", True)
        assert all(output.is_accepting is not None for output in outputs)


async def test_a_cut_answer_does_not_claim_to_be_whole(engine: VllmEngine, tokenizer: Tokenizer):
    constraint = lowered(JsonValue('{"type": "array", "minItems": 40}'), tokenizer)
    last = (await collect(engine, request(tokenizer, constraint=constraint)))[-1]
    assert (last.finish_reason, last.is_accepting) == ("length", False)


async def test_schemas_that_vllm_weakens_hold(engine: VllmEngine, tokenizer: Tokenizer):
    for schema in WEAKENED:
        constraint = lowered(JsonValue(json.dumps(schema)), tokenizer)
        await engine.prepare(constraint)
        sampling = SamplingParams(temperature=1.0, seed=5)
        outputs = await collect(
            engine, request(tokenizer, constraint=constraint, sampling=sampling, max_tokens=200)
        )
        if outputs[-1].finish_reason == "stop":
            jsonschema.validate(json.loads(tokenizer.decode(ids(outputs))), schema)


async def test_an_abort_and_a_closed_stream_free_vllm(
    engine: VllmEngine, tokenizer: Tokenizer, vllm: VllmServer
):
    stream = engine.generate(request(tokenizer, max_tokens=1500))
    await anext(stream)
    await engine.abort("Paris")
    assert [output async for output in stream][-1].finish_reason == "abort"
    closed: Any = engine.generate(request(tokenizer, "dogs", max_tokens=1500))
    await anext(closed)
    await closed.aclose()
    while running(vllm):
        await asyncio.to_thread(running, vllm)


async def test_thinking_is_closed_at_its_budget(engine: VllmEngine, tokenizer: Tokenizer):
    close = tokenizer.special_tokens["<|im_start|>"]  # any special token will do
    budget = ThinkingBudget(max_tokens=5, close_ids=(close,), rest=lowered(Choice(("yes", "no")), tokenizer))
    outputs = await collect(
        engine, request(tokenizer, thinking=budget, constraint=lowered(THOUGHT_THEN_ANSWER, tokenizer))
    )
    said = ids(outputs)
    assert said[5] == close
    assert tokenizer.decode(said[6:]) in ("yes", "no")
    assert outputs[-1].finish_reason == "stop"


async def test_scores_are_the_models(engine: VllmEngine, tokenizer: Tokenizer):
    outputs = await collect(
        engine, request(tokenizer, sampling=SamplingParams(temperature=0.0, logprobs=2), max_tokens=4)
    )
    scores = [score for output in outputs for score in output.logprobs]
    assert [score.token_id for score in scores] == ids(outputs)
    assert all(score.top[0][0] == score.token_id and len(score.top) == 2 for score in scores)


async def test_vllm_is_killed_in_mid_stream_and_comes_back(
    engine: VllmEngine, tokenizer: Tokenizer, vllm: VllmServer
):
    before = ids(await collect(engine, request(tokenizer)))
    stream = engine.generate(request(tokenizer, "dogs", max_tokens=1500))
    await anext(stream)
    await asyncio.to_thread(vllm.kill)
    last = [output async for output in stream][-1]
    assert last.failure is not None
    assert last.failure.code == "worker_died"
    assert engine.phase == "restarting"
    await asyncio.to_thread(vllm.start)
    after = await collect(engine, request(tokenizer))
    assert ids(after) == before
    assert engine.phase == "ready"
    assert (await engine.stats()).restarts == 1
