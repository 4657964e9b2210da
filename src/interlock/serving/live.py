"""Requests that are being answered now, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol
from weakref import WeakValueDictionary

LivePhase = Literal["waiting", "generating"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """request_id: one for each answer. started: Unix seconds. constraint: its kind, "" without one.
    tokens_per_s: since the first token; 0 before the second."""

    request_id: str
    model: str
    phase: LivePhase
    constraint: str
    started: float
    num_prompt_tokens: int
    num_tokens: int
    tokens_per_s: float


class Live(Protocol):
    """An answer that is being made."""

    @property
    def request_id(self) -> str: ...

    def live(self) -> LiveRequest | None:
        """``None`` once it has ended."""
        ...

    async def cancel(self) -> None:
        """End it as if the server had given it up."""
        ...


class LiveRequests:
    """Answers by id; it keeps none of them alive."""

    def __init__(self) -> None:
        self._answers: WeakValueDictionary[str, Live] = WeakValueDictionary()

    def add(self, answer: Live) -> None:
        self._answers[answer.request_id] = answer

    def list(self) -> tuple[LiveRequest, ...]:
        """The oldest first."""
        found = [one for answer in list(self._answers.values()) if (one := answer.live()) is not None]
        return tuple(sorted(found, key=lambda one: one.started))

    async def cancel(self, request_id: str) -> bool:
        """Whether there was such a request, which ends now."""
        answer = self._answers.get(request_id)
        if answer is None or answer.live() is None:
            return False
        await answer.cancel()
        return True
