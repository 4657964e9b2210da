"""A service that plays given events instead of generating: for tests of endpoints and of client libraries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import Enforcement, EnginePhase, EngineRequest, EngineStats
from interlock.core.events import (
    Event,
    Finished,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.request import GenerateRequest
from interlock.core.sampling import SamplingParams
from interlock.core.timings import RequestTimings
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import ToolContext
from interlock.core.usage import Usage
from interlock.errors import InterlockError, Problem
from interlock.families.registry import FAMILIES
from interlock.resolve.resolve import Resolved
from interlock.serving.live import LiveRequest
from interlock.settings.model import ModelSettings
from interlock.tokenization.byte_tokenizer import byte_tokenizer

USAGE = Usage(prompt_tokens=12, completion_tokens=7, cached_tokens=4, reasoning_tokens=2)
TIMINGS = RequestTimings(prefill_s=0.25, decode_s=1.5)

# An exception in a script is raised at that place, an asyncio.Event is waited for.
Step = Event | BaseException | asyncio.Event
Script = Sequence[Step]


def text(*pieces: str, reason: FinishReason = "stop") -> list[Step]:
    """An answer in plain text."""
    return [*(TextDelta(text=piece) for piece in pieces), Finished(reason=reason, usage=USAGE)]


def thinking(*pieces: str) -> list[Step]:
    return [ReasoningDelta(text=piece) for piece in pieces]


def call(name: str, arguments: Iterable[str], *, index: int = 0, complete: bool = True) -> list[Step]:
    """A tool call whose arguments come in pieces."""
    start = ToolCallStart(index=index, id=f"call_{index:032x}", name=name)
    pieces = [ToolCallArguments(index=index, text=piece) for piece in arguments]
    return [start, *pieces, *([ToolCallEnd(index=index)] if complete else [])]


def finish(reason: FinishReason = "tool_calls") -> list[Step]:
    return [Finished(reason=reason, usage=USAGE)]


class ScriptedGeneration:
    """Plays a script once."""

    def __init__(self, script: Script, service: ScriptedService, request: GenerateRequest) -> None:
        sampling = request.sampling
        self.logprobs = None if sampling.logprobs is None else sampling.logprobs_of
        self.tools = service.tools
        self.notes = service.notes
        self.unenforced = service.unenforced
        self.enforcement = service.enforcement
        self._on_close = service.on_close
        self.num_prompt_tokens = USAGE.prompt_tokens
        self.timings = TIMINGS
        self.num_closes = 0
        self._events = self._play(script)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def aclose(self) -> None:
        self.num_closes += 1
        self._on_close()

    async def _play(self, script: Script) -> AsyncIterator[Event]:
        for step in script:
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, BaseException):
                raise step
            else:
                yield step


class ScriptedService:
    """Implements ``api.context.Service``; ``phase`` and ``stats`` are what an engine has.

    answer: the script for a request; an ``InterlockError`` it raises is one of ``start``.
    """

    def __init__(
        self,
        answer: Callable[[GenerateRequest], Script] = lambda _: text("Hello", " there."),
        *,
        model_names: tuple[str, ...] = ("scripted",),
        tools: ToolContext | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.answer = answer
        self.model_names = model_names
        self.phase: EnginePhase = "ready"
        self.tools = tools or ToolContext()
        self.notes = notes
        self.unenforced: tuple[Problem, ...] = ()
        self.enforcement: Enforcement | None = None
        self.reported: list[tuple[JsonValue, tuple[str, ...], dict[str, str]]] = []
        self.spec: ConstraintSpec | None = None
        self.refusal: InterlockError | None = None  # what ``check`` raises
        self.checked: list[ConstraintSpec] = []
        self._tokenizer = byte_tokenizer()
        self.requests: list[GenerateRequest] = []
        self.generations: list[ScriptedGeneration] = []
        self.gate: asyncio.Event | None = None  # where set, ``start`` waits for it
        self.on_close: Callable[[], object] = lambda: None
        self.arrived = asyncio.Event()
        self.started = asyncio.Event()

    async def start(self, request: GenerateRequest) -> ScriptedGeneration:
        self._check_model(request.model)
        self.requests.append(request)
        self.arrived.set()
        if self.gate is not None:
            await self.gate.wait()
        generation = ScriptedGeneration(self.answer(request), self, request)
        self.generations.append(generation)
        self.started.set()
        return generation

    async def resolve(self, request: GenerateRequest) -> Resolved:
        self._check_model(request.model)
        return Resolved(
            engine_request=EngineRequest(
                request_id=request.request_id,
                prompt_ids=tuple(range(USAGE.prompt_tokens)),
                sampling=SamplingParams(),
                max_tokens=request.max_tokens or 1,
            ),
            spec=self.spec,
            constraint_kind="",
            bound=False,
            tools=self.tools,
            thinking="none",
            parser_mode="ignore",
            stop=request.stop,
            text=request.text,
            include_reasoning=True,
            notes=self.notes,
            enforcement=self.enforcement or Enforcement(),
        )

    async def check(self, spec: ConstraintSpec, model: str, documents: Mapping[str, str]) -> LoweredConstraint:
        self._check_model(model)
        del documents
        self.checked.append(spec)
        if self.refusal is not None:
            raise self.refusal
        return LoweredConstraint(provider=spec.provider, grammar="", key=spec.digest(), notes=self.notes)

    async def report(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        self.reported.append((value, tuple(instances), dict(documents)))
        return {"compiled": True, "report": [], "instances": [{"accepted": True} for _ in instances]}

    def tokenizer(self, model: str) -> Tokenizer:
        self._check_model(model)
        return self._tokenizer

    def _check_model(self, name: str) -> None:
        if name not in self.model_names:
            raise InterlockError("model_not_found", f"the model {name!r} is not served here", param="model")

    async def stats(self) -> EngineStats:
        return EngineStats(num_slots=8, num_running=len(self.generations))


class ScriptedModel:
    """Implements ``api.admin.service.AdminModel``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.family = FAMILIES[0]
        self.phase: EnginePhase = "ready"
        self.problems: tuple[str, ...] = ()
        self.settings = ModelSettings()


class ScriptedAdmin:
    """Implements ``api.admin.service.AdminService``: one model, and no request that runs."""

    def __init__(self, name: str = "scripted") -> None:
        self.models = (ScriptedModel(name),)

    def find(self, name: str) -> ScriptedModel:
        if name != self.models[0].name:
            raise InterlockError("model_not_found", f"the model {name!r} is not served here", param="model")
        return self.models[0]

    def live(self) -> tuple[LiveRequest, ...]:
        return ()

    async def cancel(self, request_id: str) -> None:
        raise InterlockError("not_found", f"no request {request_id!r} is running")

    async def configure(self, name: str, changes: Mapping[str, Any]) -> ModelSettings:
        model = self.find(name)
        model.settings = model.settings.changed(changes)
        return model.settings
