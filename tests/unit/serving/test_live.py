from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.events import Finished, TokenTraced
from interlock.core.output_format import JsonSchemaFormat
from interlock.core.request import ReportOptions
from interlock.core.timings import RequestTimings
from interlock.core.trace import TokenTrace

TRACE = TokenTrace(
    token_id=ord("a"),
    source="sampled",
    probability=0.25,
    wanted=ord("b"),
    wanted_probability=0.5,
    num_allowed=3,
    allowed=((ord("a"), 0.25),),
    removed=0.5,
)


async def endless(_: EngineRequest) -> AsyncIterator[int]:
    while True:
        await asyncio.sleep(0)
        yield ord("a")


async def test_a_running_request_is_listed_until_it_ends(world: Any) -> None:
    made = await world("ab")
    generation = await made.begin()
    (waiting,) = made.service.live.list()
    assert (waiting.phase, waiting.num_tokens, waiting.constraint) == ("waiting", 0, "")
    await anext(generation)
    (running,) = made.service.live.list()
    assert (running.phase, running.num_tokens, running.model) == ("generating", 1, "m")
    assert [event async for event in generation]
    assert made.service.live.list() == ()


async def test_cancel_ends_a_request_with_abort(world: Any) -> None:
    made = await world(endless)
    generation = await made.begin(max_tokens=100)
    await anext(generation)
    assert await made.service.live.cancel(generation.request_id)
    events = [event async for event in generation]
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "abort"
    assert not await made.service.live.cancel(generation.request_id)
    assert made.num_in_flight == 0


async def test_cancel_before_the_first_read_ends_it_too(world: Any) -> None:
    made = await world(endless)
    generation = await made.begin()
    assert await made.service.live.cancel(generation.request_id)
    (event,) = [event async for event in generation]
    assert isinstance(event, Finished)
    assert event.reason == "abort"
    assert made.engine.requests == []


async def test_an_unknown_id_is_not_cancelled(world: Any) -> None:
    assert not await (await world("a")).service.live.cancel("nobody")


async def test_timings_of_both_processes_come_with_the_end_where_asked_for(world: Any) -> None:
    def script(_: EngineRequest) -> list[EngineOutput]:
        timings = RequestTimings(queue_s=1.5, num_forced=4)
        return [EngineOutput(request_id="", token_ids=(ord("1"),), finish_reason="stop", timings=timings)]

    made = await world(script)
    format_ = JsonSchemaFormat(schema='{"type": "integer"}')
    plain = await made.answer(output_format=format_)
    asked = await made.answer(output_format=format_, reports=ReportOptions(timings=True))
    assert plain[-1].timings is None
    timings = asked[-1].timings
    assert (timings.queue_s, timings.num_forced, timings.cache_hit) == (1.5, 4, False)
    assert timings.compile_s > 0


async def test_a_trace_comes_in_front_of_the_text_of_its_token(world: Any) -> None:
    made = await world(lambda _: [EngineOutput(request_id="", token_ids=(ord("a"),), trace=(TRACE,))])
    events = await made.answer(reports=ReportOptions(trace=True))
    assert made.engine.requests[0].trace
    assert events[0] == TokenTraced(trace=TRACE, spellings={ord("a"): b"a", ord("b"): b"b"})
