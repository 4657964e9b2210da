"""Workers with the fake runner, and what their tests ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from interlock.config import EngineConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.client import LocalEngine

CONFIG = EngineConfig(
    model=Path("none"), runner="fake", slots=4, context_tokens=1_000_000, max_batch_tokens=64, mask_threads=1
)
LIMIT_S = 60.0


def make_request(request_id: str, **fields: Any) -> EngineRequest:
    settings: dict[str, Any] = {"prompt_ids": (1, 2, 3), "sampling": SamplingParams(), "max_tokens": 5} | fields
    return EngineRequest(request_id=request_id, **settings)


def endless(request_id: str) -> EngineRequest:
    return make_request(request_id, max_tokens=900_000)


@asynccontextmanager
async def running(config: EngineConfig = CONFIG, **options: Any) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(config, **options)
    try:
        async with asyncio.timeout(LIMIT_S):
            await engine.start()
        yield engine
    finally:
        await engine.stop()


async def collect(engine: LocalEngine, request: EngineRequest) -> list[EngineOutput]:
    async with asyncio.timeout(LIMIT_S):
        return [output async for output in engine.generate(request)]


async def ended(process: psutil.Process) -> None:
    """Until a process has gone."""
    async with asyncio.timeout(LIMIT_S):
        await asyncio.to_thread(process.wait, LIMIT_S)


def worker_of(engine: LocalEngine) -> psutil.Process:
    assert engine.worker_pid is not None
    return psutil.Process(engine.worker_pid)


def ids_of(outputs: list[EngineOutput]) -> list[int]:
    return [token_id for output in outputs for token_id in output.token_ids]


def grammar(lark: str) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark)


async def kill_worker(engine: LocalEngine) -> None:
    """Once there is one, until the engine knows."""
    async with asyncio.timeout(LIMIT_S):
        await engine.start()
        worker = worker_of(engine)
        worker.kill()
        while engine.worker_pid == worker.pid:
            await asyncio.to_thread(worker.is_running)
