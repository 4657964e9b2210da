"""What the admin endpoints need from below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from interlock.core.engine import EnginePhase
from interlock.families.base import ModelFamily
from interlock.serving.live import LiveRequest
from interlock.settings.model import ModelSettings


class AdminModel(Protocol):
    """A served model. family: with its settings applied. problems: what of it does not work on this model."""

    name: str
    family: ModelFamily
    problems: tuple[str, ...]
    settings: ModelSettings

    @property
    def phase(self) -> EnginePhase: ...


class AdminService(Protocol):
    @property
    def models(self) -> Sequence[AdminModel]: ...

    def find(self, name: str) -> AdminModel:
        """By name or alias. Raises ``model_not_found``."""
        ...

    def live(self) -> Sequence[LiveRequest]:
        """The answers that are being made, the oldest first."""
        ...

    async def cancel(self, request_id: str) -> None:
        """Raises ``not_found``."""
        ...

    async def configure(self, name: str, changes: Mapping[str, Any]) -> ModelSettings:
        """Apply changes to new requests. Raises ``invalid_value`` or what the compile pool says of a grammar."""
        ...
