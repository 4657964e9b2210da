"""The front door of the API process: a ``GenerateRequest`` in, a ``Generation`` out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from interlock import log
from interlock.config import LOAD_AT_START, HttpConfig, LoadConfig
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EngineRequest, EngineStats
from interlock.core.request import GenerateRequest
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.metrics import Metrics
from interlock.resolve.resolve import Resolved, resolve
from interlock.serving.generation import Clock, Generation, timed_out
from interlock.serving.in_flight import InFlight
from interlock.serving.lifecycle import Lifecycle
from interlock.serving.live import LiveRequests
from interlock.serving.model import ServedModel
from interlock.serving.request_defaults import with_defaults
from interlock.serving.validity import RelaxedAnswer, relaxed_schemas
from interlock.settings.model import ModelSettings

_log = log.get(__name__)

# A request with more characters than this takes longer to render and tokenise than the loop may be held.
_LARGE_REQUEST = 50_000


class GenerationService:
    """One model's requests. ``lifecycle`` starts and stops what they run on, ``live`` knows those that run."""

    def __init__(
        self, model: ServedModel, metrics: Metrics, http: HttpConfig, load: LoadConfig = LOAD_AT_START
    ) -> None:
        self._model = model
        self._settings = ModelSettings()
        self._metrics = metrics
        self._timeout_s = http.request_timeout_s
        self.live = LiveRequests()
        in_flight = InFlight(http.max_concurrent, metrics.in_flight)
        self.lifecycle = Lifecycle(model.engine, model.compile_pool, in_flight, http.drain_s, load, model.name)

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names a request's ``model`` may have, the main one first."""
        return (self._model.name, *(self._settings.aliases or ()))

    def use(self, model: ServedModel, settings: ModelSettings) -> None:
        """Answer requests that start from now on like this. ``model`` has the same engine and pool as before."""
        self._model, self._settings = model, settings

    async def start(self, request: GenerateRequest) -> Generation:
        """Everything that can go wrong before the first byte: admission, resolving, the constraint.

        Raises ``InterlockError``. The generation must be read to its end or closed.
        """
        self._check_model(request.model)
        ticket, model = self.lifecycle.admit(), self._model
        try:
            clock = self._clock(request)
            async with asyncio.timeout_at(clock.deadline):
                await self.lifecycle.wake()
                resolved = await self._resolve(request)
                compile_s, cache_hit, constraint = await self._prepare(resolved.spec)
                engine_request = await self._engine_request(resolved, constraint)
            generation = Generation(
                engine=self._model.engine,
                request=engine_request,
                processor=model.reader.processor(resolved),
                ticket=ticket,
                clock=clock,
                metrics=self._metrics,
                tools=resolved.tools,
                notes=self._notes(resolved, constraint),
                unenforced=() if constraint is None else constraint.unenforced,
                enforcement=None if constraint is None else resolved.enforcement,
                relaxed=self._relaxed(resolved.spec),
                model=request.model,
                constraint_kind="" if constraint is None else resolved.constraint_kind,
                compile_s=compile_s,
                cache_hit=cache_hit,
                with_timings=request.reports.timings,
            )
            self.live.add(generation)
            return generation
        except TimeoutError:
            ticket.release()
            raise timed_out() from None
        except BaseException:
            ticket.release()
            raise

    async def resolve(self, request: GenerateRequest) -> Resolved:
        """What would be run for ``request``; nothing is. Valid once the engine was ready."""
        self._check_model(request.model)
        self.lifecycle.require_ready()
        await self.lifecycle.wake()  # the length of the context is not known before
        return await self._resolve(request)

    async def check(self, spec: ConstraintSpec, model: str, documents: Mapping[str, str]) -> LoweredConstraint:
        """Lower and try out a constraint. Raises what a request with it would get."""
        self._check_model(model)
        return (await self._model.compile_pool.lower(spec, documents)).constraint

    async def report(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        """``schema_report`` of a value, by a compile helper. Raises the ``InterlockError`` of one that was ended."""
        return await self._model.compile_pool.check(value, instances, documents)

    async def stats(self) -> EngineStats:
        """The engine's counters; may raise ``InterlockError``."""
        return await self._model.engine.stats()

    def tokenizer(self, model: str) -> Tokenizer:
        """Raises ``model_not_found``."""
        self._check_model(model)
        return self._model.tokenizer

    def _check_model(self, name: str) -> None:
        if name not in self.model_names:
            raise InterlockError(
                "model_not_found",
                f"the model `{name}` is not served here; this server has {', '.join(self.model_names)}",
                param="model",
            )

    def _clock(self, request: GenerateRequest) -> Clock:
        arrival = asyncio.get_running_loop().time()
        limit_s = self._timeout_s if request.timeout_s is None else min(request.timeout_s, self._timeout_s)
        return Clock(arrival=arrival, deadline=arrival + limit_s)

    async def _resolve(self, request: GenerateRequest) -> Resolved:
        request, profile = with_defaults(request, self._settings), self._model.profile()
        if _num_characters(request) > _LARGE_REQUEST:
            return await asyncio.to_thread(resolve, request, profile)
        return resolve(request, profile)

    async def _prepare(
        self, spec: ConstraintSpec | None
    ) -> tuple[float, bool | None, LoweredConstraint | None]:
        """Seconds that it took, whether the lowered constraint was there already, and the constraint."""
        if spec is None:
            return 0.0, None, None
        started = time.perf_counter()
        lowering = await self._model.compile_pool.lower(spec)
        await self._model.engine.prepare(lowering.constraint)
        return time.perf_counter() - started, lowering.is_cached, lowering.constraint

    async def _engine_request(self, resolved: Resolved, constraint: LoweredConstraint | None) -> EngineRequest:
        """Complete, and known to be one that the engine can answer."""
        request, thinking = resolved.engine_request, resolved.engine_request.thinking
        if thinking is not None and resolved.spec_after_thinking is not None:
            _, _, rest = await self._prepare(resolved.spec_after_thinking)
            thinking = replace(thinking, rest=rest)
        request = replace(request, constraint=constraint, thinking=thinking)
        self._model.engine.check(request)
        return request

    def _relaxed(self, spec: ConstraintSpec | None) -> RelaxedAnswer | None:
        schemas = relaxed_schemas(spec)
        return RelaxedAnswer(schemas, self._model.compile_pool.validate) if schemas else None

    def _notes(self, resolved: Resolved, constraint: LoweredConstraint | None) -> tuple[str, ...]:
        if constraint is None:
            return resolved.notes
        self._metrics.constrained.labels(kind=resolved.constraint_kind).inc()
        if constraint.notes:
            _log.debug("request %s: %s", resolved.engine_request.request_id, "; ".join(constraint.notes))
        return resolved.notes + constraint.notes


def _num_characters(request: GenerateRequest) -> int:
    """Roughly the size of what is rendered, cheap to know."""
    prompt = len(request.prompt or ())
    messages = sum(
        len(message.content or "") + sum(len(call.arguments) for call in message.tool_calls)
        for message in request.messages
    )
    declared = (*(request.tools or ()), *(tool for message in request.messages for tool in message.tools))
    return prompt + messages + sum(len(tool.parameters) + len(tool.description or "") for tool in declared)
