"""An engine that can be started again after a stop: what a model that is loaded on demand stands on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import cast

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import Engine, EngineOutput, EnginePhase, EngineRequest, EngineStats, EngineTraits
from interlock.errors import InterlockError


class ReloadableEngine:
    """Implements ``core.engine.Engine``. make: a new engine, for each start."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._engine: Engine | None = None
        self._max_context_tokens = 0

    @property
    def phase(self) -> EnginePhase:
        return "unloaded" if self._engine is None else self._engine.phase

    @property
    def max_context_tokens(self) -> int:
        """Known from the first start on."""
        return self._max_context_tokens

    @property
    def traits(self) -> EngineTraits:
        return EngineTraits() if self._engine is None else self._engine.traits

    def check(self, request: EngineRequest) -> None:
        self._loaded().check(request)

    async def start(self) -> None:
        if self._engine is not None:
            await self._engine.start()
            return
        engine = self._engine = self._make()
        try:
            await engine.start()
            self._max_context_tokens = engine.max_context_tokens
        except BaseException:
            self._engine = None
            await engine.stop()
            raise

    async def stop(self, drain_s: float = 0.0) -> None:
        engine = self._engine
        if engine is not None:
            await engine.stop(drain_s)
            self._engine = None

    async def prepare(self, constraint: LoweredConstraint) -> None:
        await self._loaded().prepare(constraint)

    async def generate(self, request: EngineRequest) -> AsyncIterator[EngineOutput]:
        outputs = cast("AsyncGenerator[EngineOutput, None]", self._loaded().generate(request))
        async with aclosing(outputs):
            async for output in outputs:
                yield output

    async def abort(self, request_id: str) -> None:
        if self._engine is not None:
            await self._engine.abort(request_id)

    async def stats(self) -> EngineStats:
        """Zeros while nothing is loaded."""
        return EngineStats() if self._engine is None else await self._engine.stats()

    def _loaded(self) -> Engine:
        if self._engine is None:
            raise InterlockError("not_ready", "the model is not loaded")
        return self._engine
