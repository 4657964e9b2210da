"""What every engine does, whatever is behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from interlock.config import EngineConfig, FakeConfig, VllmConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import Engine, EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.client import LocalEngine
from interlock.engine.fake import ScriptedEngine
from interlock.errors import InterlockError
from interlock.remote.vllm import VllmEngine
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.fakes.vllm import FakeVllm, write_byte_tokenizer

TOKENIZER = byte_tokenizer()
STOP_ID = TOKENIZER.vocabulary.stop_ids[0]
SAID = {"A>": "an answer", "B>": "another one, longer", "C>": "x" * 5000}
GOOD = LoweredConstraint(provider="llguidance", grammar='start: "an answer"', key="good")
BAD = LoweredConstraint(provider="llguidance", grammar="start: undefined_rule", key="bad")
LIMIT_S = 60.0


def scripted_engine(_: Path) -> ScriptedEngine:
    def script(request: EngineRequest) -> Iterable[int]:
        return [*TOKENIZER.encode(SAID[TOKENIZER.decode(request.prompt_ids)]), STOP_ID]

    refusal = InterlockError("invalid_grammar", "an undefined rule")
    return ScriptedEngine(
        script, context_tokens=8192, refuse=lambda constraint: refusal if constraint == BAD else None
    )


def local_engine(folder: Path) -> LocalEngine:
    script = folder / "script.json"
    script.write_text(json.dumps([{"when": prompt, "say": said} for prompt, said in SAID.items()]))
    return LocalEngine(
        EngineConfig(
            model=Path("none"),
            runner="fake",
            slots=4,
            context_tokens=8192,
            mask_threads=1,
            fake=FakeConfig(mode="scripted", script=script),
        )
    )


@pytest.fixture
async def fake_vllm() -> AsyncIterator[FakeVllm]:
    def say(body: dict[str, Any]) -> list[int]:
        return [*TOKENIZER.encode(SAID.get(TOKENIZER.decode(body["token_ids"]), SAID["A>"])), STOP_ID]

    server = FakeVllm(TOKENIZER, say)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(params=[scripted_engine, local_engine, "vllm"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path, fake_vllm: FakeVllm) -> AsyncIterator[Engine]:
    engine: Engine
    if request.param == "vllm":
        config = VllmConfig(urls=(fake_vllm.url,), tokenizer=write_byte_tokenizer(tmp_path, TOKENIZER))
        engine = VllmEngine(config, TOKENIZER)
    else:
        engine = request.param(tmp_path)
    assert engine.phase == "starting"
    async with asyncio.timeout(LIMIT_S):
        await engine.start()
    yield engine
    await engine.stop()


def make_request(prompt: str, **fields: Any) -> EngineRequest:
    settings: dict[str, Any] = {
        "request_id": prompt,
        "prompt_ids": tuple(TOKENIZER.encode(prompt)),
        "sampling": SamplingParams(temperature=0.0),
        "max_tokens": 6000,
        "stop_ids": (STOP_ID,),
    }
    return EngineRequest(**(settings | fields))


async def collect(engine: Engine, request: EngineRequest) -> list[EngineOutput]:
    async with asyncio.timeout(LIMIT_S):
        return [output async for output in engine.generate(request)]


def text(outputs: list[EngineOutput]) -> str:
    return TOKENIZER.decode([token_id for output in outputs for token_id in output.token_ids])


async def test_is_ready_after_start(engine: Engine):
    assert engine.phase == "ready"
    assert engine.max_context_tokens == 8192


async def test_a_request_ends_once_and_its_stop_id_is_not_part_of_it(engine: Engine):
    outputs = await collect(engine, make_request("A>"))
    assert text(outputs) == "an answer"
    assert [output.finish_reason for output in outputs if output.finish_reason] == ["stop"]
    assert outputs[-1].finish_reason == "stop"
    assert {(output.request_id, output.num_prompt_tokens) for output in outputs} == {("A>", 2)}


async def test_max_tokens_ends_with_length(engine: Engine):
    outputs = await collect(engine, make_request("A>", max_tokens=4))
    assert (text(outputs), outputs[-1].finish_reason) == ("an a", "length")


async def test_requests_run_side_by_side(engine: Engine):
    prompts = ["A>", "B>"]
    results = await asyncio.gather(*(collect(engine, make_request(prompt)) for prompt in prompts))
    assert [text(outputs) for outputs in results] == [SAID[prompt] for prompt in prompts]


async def test_an_id_can_be_used_again(engine: Engine):
    for _ in range(2):
        assert text(await collect(engine, make_request("A>"))) == "an answer"


async def test_an_abort_ends_the_request(engine: Engine):
    stream = engine.generate(make_request("C>"))
    await anext(stream)
    await engine.abort("C>")
    assert [output async for output in stream][-1].finish_reason == "abort"
    await engine.abort("nobody")


async def test_closing_early_frees_what_it_held(engine: Engine):
    stream: Any = engine.generate(make_request("C>"))
    await anext(stream)
    await stream.aclose()
    async with asyncio.timeout(LIMIT_S):
        while (await engine.stats()).num_running:
            pass


async def test_a_constrained_request_says_at_its_end_whether_it_accepts(engine: Engine):
    await engine.prepare(GOOD)
    outputs = await collect(engine, make_request("A>", constraint=GOOD))
    assert text(outputs) == "an answer"
    assert [output.is_accepting for output in outputs[:-1]] == [None] * (len(outputs) - 1)
    assert outputs[-1].is_accepting is True
    assert (await collect(engine, make_request("A>")))[-1].is_accepting is None


async def test_acceptance_is_on_every_output_when_asked(engine: Engine):
    outputs = await collect(engine, make_request("A>", constraint=GOOD, report_accepting=True))
    assert all(output.is_accepting is not None for output in outputs)


async def test_a_bad_constraint_is_refused_by_prepare(engine: Engine):
    with pytest.raises(InterlockError) as refused:
        await engine.prepare(BAD)
    assert refused.value.code == "invalid_grammar"


async def test_stop_ends_every_request_and_refuses_new_ones(engine: Engine):
    stream = engine.generate(make_request("C>"))
    await anext(stream)
    await engine.stop()
    for outputs in ([output async for output in stream], await collect(engine, make_request("A>"))):
        assert outputs[-1].failure is not None
        assert outputs[-1].failure.code == "shutting_down"
    await engine.stop()


async def test_a_drain_lets_requests_finish(engine: Engine):
    stream = engine.generate(make_request("B>"))
    outputs = [await anext(stream)]
    stopping = asyncio.create_task(engine.stop(drain_s=LIMIT_S))
    async with asyncio.timeout(LIMIT_S):
        outputs += [output async for output in stream]
        await stopping
    assert text(outputs) == SAID["B>"]
