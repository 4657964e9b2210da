from __future__ import annotations

import asyncio

import pytest

from interlock.api.context import ApiContext
from interlock.api.running import RunningRequest
from interlock.api.scripted import USAGE, ScriptedService, text
from interlock.config import HttpConfig
from interlock.core.events import Event, Failed, Finished, TextDelta
from interlock.core.messages import Message
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError
from interlock.metrics import Metrics

REQUEST = GenerateRequest(request_id="r", model="scripted", messages=(Message(role="user", content="x"),))


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
def running(service: ScriptedService) -> RunningRequest:
    context = ApiContext(
        service=service,
        health=lambda: "ready",
        stats=service.stats,
        http=HttpConfig(),
        metrics=Metrics(),
        created=0,
    )
    return RunningRequest(context, "test")


async def collect(running: RunningRequest) -> list[Event]:
    return [event async for event in running]


async def test_a_stream_waits_for_its_first_event_and_loses_nothing(running, service) -> None:
    async with running:
        await running.start_stream(REQUEST)
        assert await collect(running) == text("Hello", " there.")
        assert await collect(running) == []
    assert service.generations[0].num_closes == 1


async def test_a_first_event_that_is_late_does_not_hold_the_stream_back(running, service) -> None:
    gate = asyncio.Event()
    service.answer = lambda _: [gate, *text("late")]
    async with running:
        await running.start_stream(REQUEST, first_event_s=0)
        gate.set()
        assert await collect(running) == text("late")


async def test_a_late_failure_is_an_event(running, service) -> None:
    gate = asyncio.Event()
    error = InterlockError("worker_died", "gone")
    service.answer = lambda _: [gate, Failed(error=error)]
    async with running:
        await running.start_stream(REQUEST, first_event_s=0)
        gate.set()
        assert await collect(running) == [Failed(error=error)]


async def test_an_early_failure_is_raised_and_closes(running, service) -> None:
    service.answer = lambda _: [Failed(error=InterlockError("worker_died", "gone"))]
    with pytest.raises(InterlockError, match="gone"):
        async with running:
            await running.start_stream(REQUEST)
    assert service.generations[0].num_closes == 1


async def test_nothing_follows_the_end(running, service) -> None:
    end = Finished(reason="stop", usage=USAGE)
    service.answer = lambda _: [end, TextDelta(text="more"), end]
    async with running:
        await running.start(REQUEST)
        assert await collect(running) == [end]


async def test_closing_while_the_first_event_is_awaited_frees_the_generation(running, service) -> None:
    service.answer = lambda _: [asyncio.Event()]
    async with running:
        await running.start_stream(REQUEST, first_event_s=0)
        close = running.detach()
    assert service.generations[0].num_closes == 0
    await close()
    await close()
    assert service.generations[0].num_closes == 1
