from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from interlock.config import GenerationDefaults, HttpConfig
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint, Lowering
from interlock.core.engine import EngineRequest
from interlock.core.events import Event
from interlock.core.messages import Message
from interlock.core.request import GenerateRequest
from interlock.engine.fake import ScriptedEngine
from interlock.errors import InterlockError
from interlock.families.qwen3 import FAMILY
from interlock.families.wire.render import PromptRenderer
from interlock.metrics import Metrics
from interlock.serving.generation import Generation
from interlock.serving.model import ServedModel
from interlock.serving.service import GenerationService
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

TEMPLATE = "{%- for message in messages %}{{ message.content }}<|im_end|>{% endfor -%}"


class FakePool:
    """A compile pool that lowers nothing: ``refusal`` is raised, ``gate`` is waited for."""

    def __init__(self) -> None:
        self.refusal: InterlockError | None = None
        self.gate: asyncio.Event | None = None
        self.waiting = asyncio.Event()
        self.specs: list[ConstraintSpec] = []
        self.running = False
        self.validated: list[tuple[str, str]] = []

    async def validate(self, pairs: Sequence[tuple[str, str]]) -> tuple[bool | None, ...]:
        self.validated.extend(pairs)
        return (True,) * len(pairs)

    async def check(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        raise AssertionError("nobody asks for a report here")

    async def start(self) -> None:
        self.running = True

    async def stop(self) -> None:
        self.running = False

    async def lower(self, spec: ConstraintSpec, documents: Mapping[str, str] = NO_DOCUMENTS) -> Lowering:
        self.specs.append(spec)
        self.waiting.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.refusal is not None:
            raise self.refusal
        constraint = LoweredConstraint(
            provider=spec.provider, grammar="start: /.*/", key=spec.digest(), notes=("format is ignored",)
        )
        return Lowering(constraint=constraint)


class World:
    """A service with everything around it scripted."""

    def __init__(self, script: Callable[[EngineRequest], Any] | str, http: HttpConfig, **engine: Any) -> None:
        self.tokenizer = byte_tokenizer()
        play = self.spell(script) if isinstance(script, str) else script
        self.engine = ScriptedEngine(play, **engine)
        self.pool = FakePool()
        self.metrics = Metrics()
        description = ModelDescription(
            tokenizer=self.tokenizer,
            architecture="test",
            name="test",
            chat_template=TEMPLATE,
            context_tokens=0,
            bos_token="",
            eos_token="<|im_end|>",
        )
        model = ServedModel(
            name="m",
            family=FAMILY,
            tokenizer=self.tokenizer,
            renderer=PromptRenderer(FAMILY, description),
            engine=self.engine,
            compile_pool=self.pool,
            defaults=GenerationDefaults(),
        )
        self.service = GenerationService(model, self.metrics, http)

    def spell(self, text: str) -> Callable[[EngineRequest], list[int]]:
        return lambda request: [*self.tokenizer.encode(text), self.tokenizer.vocabulary.stop_ids[0]]

    @property
    def num_in_flight(self) -> int:
        return self.service.lifecycle.in_flight.num_requests

    async def begin(self, **fields: Any) -> Generation:
        request = GenerateRequest(
            request_id=f"r{len(self.engine.requests)}",
            model="m",
            messages=(Message(role="user", content="hi"),),
        )
        return await self.service.start(replace(request, **fields))

    async def answer(self, **fields: Any) -> list[Event]:
        return [event async for event in await self.begin(**fields)]


@pytest.fixture
async def world() -> AsyncIterator[Callable[..., Any]]:
    """Makes started worlds: ``await world(script, max_concurrent=..., ...)``."""
    worlds: list[World] = []

    async def make(
        script: Any = "", *, engine: dict[str, Any] | None = None, start: bool = True, **http: Any
    ) -> World:
        made = World(script, HttpConfig(**{"drain_s": 0.0, **http}), **(engine or {}))
        worlds.append(made)
        if start:
            await made.service.lifecycle.start()
        return made

    yield make
    for made in worlds:
        await made.service.lifecycle.stop()
