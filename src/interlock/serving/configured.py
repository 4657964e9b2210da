"""A served model with its settings: applied at the start, and again at each change, for new requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from interlock import log
from interlock.core.engine import EnginePhase
from interlock.core.request import JsonPolicy
from interlock.errors import InterlockError
from interlock.families import registry
from interlock.families.base import ModelFamily, ReasoningFormat
from interlock.families.check import self_check
from interlock.families.wire.constrain import answer_only
from interlock.families.wire.render import PromptRenderer
from interlock.resolve.constraint import resolve_policy
from interlock.resolve.reasoning import resolve_thinking_budget
from interlock.resolve.sampling import resolve_sampling
from interlock.serving.model import ServedModel
from interlock.serving.request_defaults import default_format, sampling_defaults
from interlock.serving.service import GenerationService
from interlock.settings.model import ModelSettings
from interlock.settings.store import SettingsStore
from interlock.tokenization.description import ModelDescription

_log = log.get(__name__)


class ConfiguredModel:
    """base: the model as the command line says. Raises what is wrong with the settings in ``store``.

    family, problems: with the settings applied, and what of the family does not work on this model.
    """

    def __init__(
        self, service: GenerationService, base: ServedModel, description: ModelDescription, store: SettingsStore
    ) -> None:
        self.name = base.name
        self.service = service
        self._base = base
        self._description = description
        self._store = store
        self._changing = asyncio.Lock()
        self.settings = store.get(base.name)
        self.family = base.family
        self.problems: tuple[str, ...] = ()
        self._use(self.settings, self._model(self.settings))

    @property
    def phase(self) -> EnginePhase:
        return self.service.lifecycle.phase

    async def configure(self, changes: Mapping[str, Any]) -> ModelSettings:
        """Check, store and apply ``changes``. Raises an ``InterlockError`` with the key's name, and nothing changes."""
        async with self._changing:
            settings = self.settings.changed(changes)
            model = self._model(settings)
            await self._try_grammar(settings, model)
            try:
                await asyncio.to_thread(self._store.put, self.name, settings)
            except OSError as error:
                raise InterlockError(
                    "internal_error", f"the settings cannot be written: {error.strerror}"
                ) from error
            self._use(settings, model)
            return settings

    def _use(self, settings: ModelSettings, model: ServedModel) -> None:
        self.service.use(model, settings)
        self.settings, self.family = settings, model.family
        self.problems = self_check(model.family, model.tokenizer, model.renderer)
        for problem in self.problems:
            _log.warning("model family %s: %s", model.family.name, problem)

    def _model(self, settings: ModelSettings) -> ServedModel:
        base = self._base
        family = _family(base.family, settings)
        renderer = base.renderer if family is base.family else PromptRenderer(family, self._description)
        resolve_sampling(sampling_defaults(settings), base.tokenizer.vocabulary.size)
        resolve_thinking_budget(
            settings.thinking_budget,
            thinking="open",
            format_=family.reasoning,
            tokenizer=base.tokenizer,
            constrained=False,
            max_tokens=1,
            cap=0,
        )
        said: dict[str, Any] = {
            "tool_constraints": settings.tool_constraints,
            "open_objects": settings.open_objects,
            "whitespace": settings.whitespace,
            "response_order": settings.property_order,
            "tool_order": settings.property_order,
            "schema_mode": settings.schema_mode,
            "max_tokens": settings.max_tokens,
        }
        defaults = replace(base.defaults, **{key: value for key, value in said.items() if value is not None})
        return replace(base, family=family, renderer=renderer, defaults=defaults)

    async def _try_grammar(self, settings: ModelSettings, model: ServedModel) -> None:
        spec = answer_only(default_format(settings), resolve_policy(JsonPolicy(), model.defaults))
        if spec is not None:
            await model.compile_pool.lower(spec)


def _family(family: ModelFamily, settings: ModelSettings) -> ModelFamily:
    if settings.family is not None:
        family = registry.by_name(settings.family)
    if settings.reasoning_parser is None:
        return family
    return replace(family, reasoning=_reasoning(settings.reasoning_parser))


def _reasoning(name: str) -> ReasoningFormat | None:
    if not name:
        return None
    found = next((family for family in registry.FAMILIES if name in (family.name, *family.aliases)), None)
    if found is None or found.reasoning is None:
        names = ", ".join(family.name for family in registry.FAMILIES if family.reasoning is not None)
        raise InterlockError(
            "invalid_value",
            f"unknown reasoning parser {name[:200]!r}; known are {names}",
            param="reasoning_parser",
        )
    return found.reasoning
