"""Models that are loaded by their first request, and unloaded when idle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from interlock.config import HttpConfig, LoadConfig
from interlock.core.messages import Message
from interlock.core.request import GenerateRequest
from interlock.engine.fake import ScriptedEngine
from interlock.errors import InterlockError
from interlock.metrics import Metrics
from interlock.serving.reloadable import ReloadableEngine
from interlock.serving.service import GenerationService

WAIT_S = 20


class SlowEngine(ScriptedEngine):
    """Its start waits for ``gate`` where there is one, and fails with ``failure``; its stop is told."""

    gate: asyncio.Event | None = None
    failure: InterlockError | None = None

    def __init__(self, tokens: list[int]) -> None:
        super().__init__(lambda _: tokens)
        self.stopped = asyncio.Event()

    async def start(self) -> None:
        self._phase = "loading_model"
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        await super().start()

    async def stop(self, drain_s: float = 0.0) -> None:
        await super().stop(drain_s)
        self.stopped.set()


class Model:
    """A service whose engines are counted."""

    def __init__(self, base: Any, load: LoadConfig) -> None:
        self.engines: list[SlowEngine] = []
        self.failures: list[InterlockError] = []
        self.gate: asyncio.Event | None = None
        self._tokens = [*b"hi", base.tokenizer.vocabulary.stop_ids[0]]
        model = replace(base.service._model, engine=ReloadableEngine(self._make), compile_pool=base.pool)
        self.service = GenerationService(model, Metrics(), HttpConfig(drain_s=0.0), load)
        self.num_requests = 0

    def _make(self) -> SlowEngine:
        engine = SlowEngine(self._tokens)
        engine.gate = self.gate
        engine.failure = self.failures.pop() if self.failures else None
        self.engines.append(engine)
        return engine

    @property
    def phase(self) -> str:
        return self.service.lifecycle.phase

    async def answer(self) -> str:
        self.num_requests += 1
        request = GenerateRequest(
            request_id=f"r{self.num_requests}", model="m", messages=(Message(role="user", content="a"),)
        )
        events = [event async for event in await self.service.start(request)]
        return "".join(getattr(event, "text", "") for event in events)


MakeModel = Callable[..., Any]


@pytest.fixture
async def make_model(world: Any) -> AsyncIterator[MakeModel]:
    made: list[Model] = []

    async def make(*, start: bool = True, **load: Any) -> Model:
        made.append(Model(await world(start=False), LoadConfig(**load)))
        if start:
            await made[-1].service.lifecycle.start()
        return made[-1]

    yield make
    for model in made:
        await model.service.lifecycle.stop()


async def test_loaded_at_the_start_unless_asked_otherwise(make_model) -> None:
    model = await make_model(start=False)
    assert model.phase == "starting"
    await model.service.lifecycle.start()
    assert (model.phase, len(model.engines)) == ("ready", 1)


async def test_the_first_request_loads_and_the_next_ones_find_it_loaded(make_model) -> None:
    model = await make_model(on_demand=True)
    assert (model.phase, model.engines) == ("unloaded", [])
    assert [await model.answer(), await model.answer()] == ["hi", "hi"]
    assert (model.phase, len(model.engines)) == ("ready", 1)


async def test_requests_that_come_while_it_loads_share_one_load(make_model) -> None:
    model = await make_model(on_demand=True)
    model.gate = asyncio.Event()
    answers = [asyncio.create_task(model.answer()) for _ in range(3)]
    await asyncio.wait(answers, timeout=0.05)
    assert model.phase == "loading_model"
    model.gate.set()
    assert await asyncio.gather(*answers) == ["hi"] * 3
    assert len(model.engines) == 1


async def test_a_client_that_goes_away_does_not_end_the_load_for_others(make_model) -> None:
    model = await make_model(on_demand=True)
    model.gate = asyncio.Event()
    gone, stays = (asyncio.create_task(model.answer()) for _ in range(2))
    await asyncio.wait([gone, stays], timeout=0.05)
    gone.cancel()
    model.gate.set()
    assert await stays == "hi"


async def test_a_load_that_fails_is_told_and_the_next_request_tries_again(make_model) -> None:
    model = await make_model(on_demand=True)
    model.failures = [InterlockError("internal_error", "no such file")]
    with pytest.raises(InterlockError, match="no such file"):
        await model.answer()
    assert (model.phase, model.service.lifecycle.in_flight.num_requests) == ("unloaded", 0)
    assert await model.answer() == "hi"


async def test_an_idle_model_is_unloaded_and_comes_back(make_model) -> None:
    model = await make_model(unload_after_s=0.01)
    async with asyncio.timeout(WAIT_S):
        await model.engines[0].stopped.wait()
    assert await model.answer() == "hi"
    assert len(model.engines) >= 2
    async with asyncio.timeout(WAIT_S):
        await model.engines[-1].stopped.wait()
    assert model.phase == "unloaded"


async def test_a_model_that_answers_is_not_idle(make_model) -> None:
    model = await make_model(unload_after_s=0.01)
    ticket = model.service.lifecycle.admit()
    await model.service.lifecycle.wake()
    engine = model.engines[-1]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await engine.stopped.wait()
    ticket.release()
    async with asyncio.timeout(WAIT_S):
        await engine.stopped.wait()


async def test_a_stop_ends_a_load_that_is_under_way(make_model) -> None:
    model = await make_model(on_demand=True)
    model.gate = asyncio.Event()
    answer = asyncio.create_task(model.answer())
    await asyncio.wait([answer], timeout=0.05)
    await model.service.lifecycle.stop()
    with pytest.raises(InterlockError) as caught:
        await answer
    assert caught.value.code == "shutting_down"
