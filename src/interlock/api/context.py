"""What the endpoints need from below, as small protocols, and the one object that carries it to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from interlock.config import HttpConfig
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import Enforcement, EnginePhase, EngineStats
from interlock.core.events import Event
from interlock.core.request import GenerateRequest
from interlock.core.sampling import LogprobsOf
from interlock.core.timings import RequestTimings
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import ToolContext
from interlock.errors import InterlockError, Problem
from interlock.metrics import Metrics
from interlock.resolve.resolve import Resolved

ReasoningField = Literal["reasoning_content", "reasoning"]
_STATS_TIMEOUT_S = 2.0


class Generation(Protocol):
    """A running request: its events, ending with exactly one ``Finished`` or ``Failed``."""

    @property
    def tools(self) -> ToolContext: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the caller should be told about how the request was read."""
        ...

    @property
    def unenforced(self) -> tuple[Problem, ...]:
        """What of relaxed schemas is left out."""
        ...

    @property
    def enforcement(self) -> Enforcement | None:
        """Who holds the answer to its constraint, if it has one."""
        ...

    @property
    def logprobs(self) -> LogprobsOf | None:
        """Which log probabilities it has, if any."""
        ...

    @property
    def num_prompt_tokens(self) -> int: ...

    @property
    def timings(self) -> RequestTimings:
        """Where its time went, as far as that is known; all of it with the last event."""
        ...

    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def aclose(self) -> None:
        """End the request and free what it holds. May be called at any time, also twice."""
        ...


class Service(Protocol):
    """The life of requests, as the endpoints see it."""

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names a request's ``model`` may have, the main one first."""
        ...

    async def start(self, request: GenerateRequest) -> Generation:
        """Everything that can go wrong before the first byte. Raises ``InterlockError``."""
        ...

    async def resolve(self, request: GenerateRequest) -> Resolved:
        """What would be run for ``request``; nothing is. Raises ``InterlockError``."""
        ...

    async def check(self, spec: ConstraintSpec, model: str, documents: Mapping[str, str]) -> LoweredConstraint:
        """Lower and try out a constraint. documents: schemas that references may name, beside the server's. Raises what a request with it would get."""
        ...

    async def report(
        self, value: JsonValue, instances: Sequence[str], documents: Mapping[str, str]
    ) -> dict[str, Any]:
        """The report on one schema: JSON data, as of ``interlock check``."""
        ...

    def tokenizer(self, model: str) -> Tokenizer:
        """Raises ``model_not_found``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    """Shared by all endpoints of one server.

    health: what the engine is doing. stats: its counters; may raise ``InterlockError``.
    created: when the server was made, Unix seconds. reasoning_field: the key for thinking text in
    messages and deltas. keep_alive_s: longest silence on a stream before a comment is sent.
    """

    service: Service
    health: Callable[[], EnginePhase]
    stats: Callable[[], Awaitable[EngineStats]]
    http: HttpConfig
    metrics: Metrics
    created: int
    reasoning_field: ReasoningField = "reasoning_content"
    keep_alive_s: float = 15.0

    async def known_stats(self) -> EngineStats | None:
        """``stats``; ``None`` while the worker does not answer."""
        try:
            return await asyncio.wait_for(self.stats(), _STATS_TIMEOUT_S)
        except (InterlockError, TimeoutError):
            return None
