"""What every engine does, whatever is behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.peers.vllm_server import VllmServer
from interlock.config import EngineConfig, FakeConfig, VllmConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import Engine, EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.client import LocalEngine
from interlock.engine.fake import ScriptedEngine
from interlock.errors import InterlockError
from interlock.remote.vllm import VllmEngine
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe
from tests.fakes.vllm import FakeVllm, write_byte_tokenizer

BYTES = byte_tokenizer()
SAID = {"A": "an answer", "B": "another one, longer", "C": "x" * 5000}
BAD = LoweredConstraint(provider="llguidance", grammar="start: undefined_rule", key="bad")
LIMIT_S = 240.0


@dataclass(frozen=True, kw_only=True)
class World:
    """An engine, and what it says. prompts: A, B, and C, whose answer takes long. said: answers to A and B. stop_ids: what
    ends them; constrained ones end with the model's own. max_tokens: more than any answer has."""

    engine: Engine
    tokenizer: Tokenizer
    prompts: dict[str, tuple[int, ...]]
    said: dict[str, tuple[int, ...]]
    stop_ids: dict[str, tuple[int, ...]]
    context_tokens: int
    max_tokens: int

    @property
    def good(self) -> LoweredConstraint:
        """Its only text is the answer to A."""
        grammar = f"start: {json.dumps(self.text(self.said['A']), ensure_ascii=False)}"
        return LoweredConstraint(provider="llguidance", grammar=grammar, key="good")

    def request(self, name: str, **fields: Any) -> EngineRequest:
        own = self.tokenizer.vocabulary.stop_ids
        endless = tuple((stop_id, -100.0) for stop_id in own) if name == "C" else ()
        settings: dict[str, Any] = {
            "request_id": name,
            "prompt_ids": self.prompts[name],
            "sampling": SamplingParams(temperature=0.0, logit_bias=endless),
            "max_tokens": self.max_tokens,
            "stop_ids": own if "constraint" in fields else self.stop_ids[name],
        }
        return EngineRequest(**(settings | fields))

    def text(self, ids: Iterable[int]) -> str:
        return self.tokenizer.decode(list(ids))


def scripted_engine(_: Path) -> ScriptedEngine:
    def script(request: EngineRequest) -> Iterable[int]:
        return answer_in_bytes(request.prompt_ids)

    refusal = InterlockError("invalid_grammar", "an undefined rule")
    return ScriptedEngine(
        script, context_tokens=8192, refuse=lambda constraint: refusal if constraint == BAD else None
    )


def local_engine(folder: Path) -> LocalEngine:
    script = folder / "script.json"
    script.write_text(json.dumps([{"when": f"{name}>", "say": said} for name, said in SAID.items()]))
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


def answer_in_bytes(prompt_ids: Sequence[int]) -> list[int]:
    """What fakes say; a trial request gets the answer to A."""
    return [*BYTES.encode(SAID.get(BYTES.decode(prompt_ids)[:1], SAID["A"])), BYTES.vocabulary.stop_ids[0]]


def world_in_bytes(engine: Engine) -> World:
    return World(
        engine=engine,
        tokenizer=BYTES,
        prompts={name: tuple(BYTES.encode(f"{name}>")) for name in SAID},
        said={name: tuple(BYTES.encode(said)) for name, said in SAID.items()},
        stop_ids=dict.fromkeys(SAID, BYTES.vocabulary.stop_ids[:1]),
        context_tokens=8192,
        max_tokens=6000,
    )


def world_of_vllm(server: VllmServer, model: Path) -> World:
    """vLLM itself is asked what it says; an answer ends at a token that was not in it before."""
    tokenizer = describe(model).tokenizer
    asked = {"A": "Name a colour.", "B": "What is the capital of France?", "C": "Tell me about the sea."}
    prompts = {
        name: tuple(tokenizer.encode(f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"))
        for name, text in asked.items()
    }
    said, stop_ids = {}, {"C": tokenizer.vocabulary.stop_ids}
    for name in ("A", "B"):
        body = {
            "model": "demo",
            "prompt": prompts[name],
            "temperature": 0,
            "max_tokens": 24,
            "return_token_ids": True,
        }
        answer = httpx.post(f"{server.url}/v1/completions", json=body, timeout=LIMIT_S)
        ids = answer.json()["choices"][0]["token_ids"]
        end = next(at for at in range(5, len(ids)) if ids[at] not in ids[:at])
        said[name], stop_ids[name] = tuple(ids[:end]), (ids[end],)
    engine = VllmEngine(VllmConfig(urls=(server.url,), tokenizer=model), tokenizer)
    return World(
        engine=engine,
        tokenizer=tokenizer,
        prompts=prompts,
        said=said,
        stop_ids=stop_ids,
        context_tokens=2048,
        max_tokens=1500,
    )


@pytest.fixture
async def fake_vllm() -> AsyncIterator[FakeVllm]:
    server = FakeVllm(BYTES, lambda body: answer_in_bytes(body["token_ids"]))
    await server.start()
    yield server
    await server.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_local = metafunc.config.getoption("--engine") == "local"
    engines = ["scripted", "local", "fake vllm"] if is_local else ["vllm"]
    metafunc.parametrize("world", engines, indirect=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path, fake_vllm: FakeVllm) -> AsyncIterator[World]:
    match request.param:
        case "scripted":
            world = world_in_bytes(scripted_engine(tmp_path))
        case "local":
            world = world_in_bytes(local_engine(tmp_path))
        case "fake vllm":
            config = VllmConfig(urls=(fake_vllm.url,), tokenizer=write_byte_tokenizer(tmp_path, BYTES))
            world = world_in_bytes(VllmEngine(config, BYTES))
        case _:
            world = world_of_vllm(request.getfixturevalue("vllm"), request.getfixturevalue("demo_model"))
    assert world.engine.phase == "starting"
    async with asyncio.timeout(LIMIT_S):
        await world.engine.start()
    yield world
    await world.engine.stop()


async def collect(world: World, request: EngineRequest) -> list[EngineOutput]:
    async with asyncio.timeout(LIMIT_S):
        return [output async for output in world.engine.generate(request)]


def ids(outputs: list[EngineOutput]) -> tuple[int, ...]:
    return tuple(token_id for output in outputs for token_id in output.token_ids)


async def test_is_ready_after_start(world: World):
    assert world.engine.phase == "ready"
    assert world.engine.max_context_tokens == world.context_tokens


async def test_a_request_ends_once_and_its_stop_id_is_not_part_of_it(world: World):
    outputs = await collect(world, world.request("A"))
    assert ids(outputs) == world.said["A"]
    assert [output.finish_reason for output in outputs if output.finish_reason] == ["stop"]
    assert outputs[-1].finish_reason == "stop"
    num_prompt_tokens = len(world.prompts["A"])
    assert {(output.request_id, output.num_prompt_tokens) for output in outputs} == {("A", num_prompt_tokens)}


async def test_max_tokens_ends_with_length(world: World):
    outputs = await collect(world, world.request("A", max_tokens=4))
    assert (ids(outputs), outputs[-1].finish_reason) == (world.said["A"][:4], "length")


async def test_requests_run_side_by_side(world: World):
    names = ["A", "B"]
    results = await asyncio.gather(*(collect(world, world.request(name)) for name in names))
    assert [ids(outputs) for outputs in results] == [world.said[name] for name in names]


async def test_an_id_can_be_used_again(world: World):
    for _ in range(2):
        assert ids(await collect(world, world.request("A"))) == world.said["A"]


async def test_an_abort_ends_the_request(world: World):
    stream = world.engine.generate(world.request("C"))
    await anext(stream)
    await world.engine.abort("C")
    last = [output async for output in stream][-1]
    assert (last.finish_reason, last.token_ids) == ("abort", ())
    await world.engine.abort("nobody")


async def test_closing_early_frees_what_it_held(world: World):
    stream: Any = world.engine.generate(world.request("C"))
    await anext(stream)
    await stream.aclose()
    async with asyncio.timeout(LIMIT_S):
        while (await world.engine.stats()).num_running:
            pass


async def test_a_constrained_request_says_at_its_end_whether_it_accepts(world: World):
    await world.engine.prepare(world.good)
    outputs = await collect(world, world.request("A", constraint=world.good))
    assert world.text(ids(outputs)) == world.text(world.said["A"])
    assert [output.is_accepting for output in outputs[:-1]] == [None] * (len(outputs) - 1)
    assert outputs[-1].is_accepting is True
    assert (await collect(world, world.request("A")))[-1].is_accepting is None


async def test_acceptance_is_on_every_output_when_asked(world: World):
    outputs = await collect(world, world.request("A", constraint=world.good, report_accepting=True))
    assert all(output.is_accepting is not None for output in outputs)


async def test_a_bad_constraint_is_refused_by_prepare(world: World):
    with pytest.raises(InterlockError) as refused:
        await world.engine.prepare(BAD)
    assert refused.value.code == "invalid_grammar"


async def test_stop_ends_every_request_and_refuses_new_ones(world: World):
    stream = world.engine.generate(world.request("C"))
    await anext(stream)
    await world.engine.stop()
    for outputs in ([output async for output in stream], await collect(world, world.request("A"))):
        assert outputs[-1].failure is not None
        assert outputs[-1].failure.code == "shutting_down"
    await world.engine.stop()


async def test_a_drain_lets_requests_finish(world: World):
    stream = world.engine.generate(world.request("B"))
    outputs = [await anext(stream)]
    stopping = asyncio.create_task(world.engine.stop(drain_s=LIMIT_S))
    async with asyncio.timeout(LIMIT_S):
        outputs += [output async for output in stream]
        await stopping
    assert ids(outputs) == world.said["B"]
