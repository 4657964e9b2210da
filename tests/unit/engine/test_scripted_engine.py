from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.fake import Script, ScriptedEngine
from interlock.errors import InterlockError

CONSTRAINT = LoweredConstraint(provider="llguidance", grammar='start: "a"', key="k")


def make_request(request_id: str = "r", *, max_tokens: int = 10, constrained: bool = False) -> EngineRequest:
    return EngineRequest(
        request_id=request_id,
        prompt_ids=(1, 2),
        sampling=SamplingParams(),
        max_tokens=max_tokens,
        stop_ids=(0,),
        constraint=CONSTRAINT if constrained else None,
    )


async def outputs_of(script: Script, request: EngineRequest, **options: bool) -> list[EngineOutput]:
    engine = ScriptedEngine(script, **options)
    await engine.start()
    return [output async for output in engine.generate(request)]


@pytest.mark.parametrize(
    ("script", "ids", "reason"),
    [
        ([5, 6, 0, 7], [5, 6], "stop"),
        ([5, 6], [5, 6], "stop"),
        ([], [], "stop"),
        (range(1, 99), list(range(1, 11)), "length"),
        ([5, EngineOutput(request_id="", token_ids=(6, 7), finish_reason="length")], [5, 6, 7], "length"),
        ([5, InterlockError("worker_died", "m")], [5], "error"),
    ],
)
async def test_a_script_plays(script, ids: list[int], reason: str):
    outputs = await outputs_of(lambda _: script, make_request())
    assert [token_id for output in outputs for token_id in output.token_ids] == ids
    assert [output.finish_reason for output in outputs if output.finish_reason] == [reason]
    assert {output.request_id for output in outputs} == {"r"}


async def test_an_error_carries_its_code():
    (output,) = await outputs_of(lambda _: [InterlockError("matcher_failed", "broke")], make_request())
    assert output.failure is not None
    assert (output.failure.code, output.failure.message) == ("matcher_failed", "broke")


@pytest.mark.parametrize("accepting", [True, False])
async def test_the_end_of_a_constrained_request_says_whether_it_accepts(accepting: bool):
    outputs = await outputs_of(lambda _: [1], make_request(constrained=True), is_accepting=accepting)
    assert outputs[-1].is_accepting is accepting
    outputs = await outputs_of(lambda _: [1], make_request())
    assert outputs[-1].is_accepting is None


async def test_an_abort_ends_a_script_that_waits():
    waiting = asyncio.Event()

    async def script(_: EngineRequest) -> AsyncIterator[int]:
        yield 5
        waiting.set()
        await asyncio.Event().wait()

    engine = ScriptedEngine(script)
    await engine.start()
    outputs = []

    async def read() -> None:
        outputs.extend([output async for output in engine.generate(make_request())])

    reading = asyncio.create_task(read())
    await waiting.wait()
    await engine.abort("r")
    await asyncio.wait_for(reading, 10)
    assert outputs[-1].finish_reason == "abort"
    assert (await engine.stats()).num_running == 0


async def test_closing_early_is_recorded_as_an_abort():
    engine = ScriptedEngine(lambda _: range(1, 9))
    await engine.start()
    stream = engine.generate(make_request())
    await anext(stream)
    await stream.aclose()
    assert engine.aborted == ["r"]
    assert (await engine.stats()).num_running == 0


async def test_prepare_raises_what_the_test_wants():
    refusal = InterlockError("invalid_grammar", "no")
    engine = ScriptedEngine(lambda _: [], refuse=lambda constraint: refusal)
    with pytest.raises(InterlockError, match="no"):
        await engine.prepare(CONSTRAINT)
    assert engine.prepared == [CONSTRAINT]
