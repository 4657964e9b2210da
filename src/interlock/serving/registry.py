"""The models of one server, behind the face of a single one: a request's ``model`` chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EnginePhase, EngineStats
from interlock.core.request import GenerateRequest
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.resolve.resolve import Resolved
from interlock.serving.configured import ConfiguredModel
from interlock.serving.generation import Generation
from interlock.serving.live import LiveRequest
from interlock.settings.model import ModelSettings

# Of several models the one that is furthest from serving speaks for all.
_WORST_FIRST: tuple[EnginePhase, ...] = (
    "failed",
    "stopping",
    "starting",
    "loading_model",
    "warming_up",
    "restarting",
    "ready",
    "unloaded",
)


class ModelRegistry:
    """models: at least one, with different names; the first is the main one. Raises ``invalid_value`` where two
    have a name in common, aliases included."""

    def __init__(self, models: Sequence[ConfiguredModel]) -> None:
        self._models = tuple(models)
        taken: set[str] = set()
        for model in models:
            _check_free(model.service.model_names, taken)
            taken.update(model.service.model_names)

    @property
    def models(self) -> tuple[ConfiguredModel, ...]:
        return self._models

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names a request's ``model`` may have: all models, the main one first, then their aliases."""
        names = [model.name for model in self._models]
        return (*names, *(name for model in self._models for name in model.service.model_names[1:]))

    def find(self, name: str) -> ConfiguredModel:
        """Raises ``model_not_found`` that lists what is there."""
        for model in self._models:
            if name in model.service.model_names:
                return model
        raise InterlockError(
            "model_not_found",
            f"the model `{name[:200]}` is not served here; this server has {', '.join(self.model_names)}",
            param="model",
        )

    async def start(self, request: GenerateRequest) -> Generation:
        return await self.find(request.model).service.start(request)

    async def resolve(self, request: GenerateRequest) -> Resolved:
        return await self.find(request.model).service.resolve(request)

    async def check(self, spec: ConstraintSpec, model: str, documents: Mapping[str, str]) -> LoweredConstraint:
        return await self.find(model).service.check(spec, model, documents)

    async def report(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        """No matter of the model."""
        return await self._models[0].service.report(value, instances, documents)

    def tokenizer(self, model: str) -> Tokenizer:
        return self.find(model).service.tokenizer(model)

    async def configure(self, name: str, changes: Mapping[str, Any]) -> ModelSettings:
        """See ``ConfiguredModel.configure``; an alias may not be a name of another model."""
        model = self.find(name)
        others = {known for other in self._models if other is not model for known in other.service.model_names}
        asked = ModelSettings().changed(changes).aliases or ()
        _check_free(asked, {*others, model.name})
        return await model.configure(changes)

    @property
    def phase(self) -> EnginePhase:
        """``ready`` once all are."""
        return min((model.service.lifecycle.phase for model in self._models), key=_WORST_FIRST.index)

    async def stats(self) -> EngineStats:
        """Sums over all models."""
        each = await asyncio.gather(*(model.service.stats() for model in self._models))
        return EngineStats(
            **{field.name: sum(getattr(stats, field.name) for stats in each) for field in fields(EngineStats)}
        )

    def live(self) -> tuple[LiveRequest, ...]:
        """The answers of all models that are being made, the oldest first."""
        found = [one for model in self._models for one in model.service.live.list()]
        return tuple(sorted(found, key=lambda one: one.started))

    async def cancel(self, request_id: str) -> None:
        """End an answer. Raises ``not_found``."""
        for model in self._models:
            if await model.service.live.cancel(request_id):
                return
        raise InterlockError("not_found", f"no request {request_id[:200]!r} is running")

    async def load(self) -> None:
        """Return when all models can serve. Raises what kept the first of them from it; then all are stopped."""
        try:
            for model in self._models:  # one after another: each takes all cores while it loads
                await model.service.lifecycle.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        await asyncio.gather(*(model.service.lifecycle.stop() for model in self._models))

    def hurry(self) -> None:
        for model in self._models:
            model.service.lifecycle.hurry()


def _check_free(names: Sequence[str], taken: set[str]) -> None:
    for name in names:
        if name in taken:
            raise InterlockError("invalid_value", f"another model is called `{name}` already", param="aliases")
