"""Engines over scripted vLLM servers, with a vocabulary of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.config import VllmConfig
from interlock.remote.vllm import VllmEngine
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.fakes.vllm import FakeVllm, Say, write_byte_tokenizer

TOKENIZER = byte_tokenizer()
STOP_ID = TOKENIZER.vocabulary.stop_ids[0]
MakeServer = Callable[..., Awaitable[FakeVllm]]
MakeEngine = Callable[..., Awaitable[VllmEngine]]


@pytest.fixture
async def make_server() -> AsyncIterator[MakeServer]:
    """make_server(said or say, **fields of FakeVllm): a running server that says ``said`` and stops."""
    servers: list[FakeVllm] = []

    async def make(said: str | Say, **fields: Any) -> FakeVllm:
        say = said if callable(said) else lambda _body: [*TOKENIZER.encode(said), STOP_ID]
        server = FakeVllm(TOKENIZER, say, **fields)
        await server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        await server.stop()


@pytest.fixture
async def make_engine(tmp_path: Path) -> AsyncIterator[MakeEngine]:
    """make_engine(*servers, **fields of VllmConfig): an engine that is ready."""
    engines: list[VllmEngine] = []
    path = write_byte_tokenizer(tmp_path, TOKENIZER)

    async def make(*servers: FakeVllm, **fields: Any) -> VllmEngine:
        config = VllmConfig(urls=tuple(server.url for server in servers), tokenizer=path, **fields)
        engine = VllmEngine(config, TOKENIZER)
        engines.append(engine)
        async with asyncio.timeout(60):
            await engine.start()
        return engine

    yield make
    for engine in engines:
        await engine.stop()
