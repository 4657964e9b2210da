"""Events of a generation to one ``chat.completion`` object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from interlock.api.context import Generation, ReasoningField
from interlock.core.events import (
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the objects of one answer have in common. created: Unix seconds."""

    id: str
    created: int
    model: str
    reasoning_field: ReasoningField

    def object(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, **fields}


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    complete: bool = False


@dataclass(slots=True)
class _Answer:
    """An answer so far."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self.text.append(text)
            case ReasoningDelta(text=text):
                self.reasoning.append(text)
            case ToolCallStart(index=index, id=call_id, name=name):
                self.calls[index] = _Call(call_id, name)
            case ToolCallArguments(index=index, text=text):
                self.calls[index].arguments.append(text)
            case ToolCallEnd(index=index):
                self.calls[index].complete = True

    def cut_calls(self) -> list[int]:
        """Indices of calls that began and did not end."""
        return [index for index, call in self.calls.items() if not call.complete]


async def complete(events: AsyncIterator[Event], *, generation: Generation, head: Head) -> dict[str, Any]:
    """The whole object. Raises the error of a ``Failed``."""
    answer = _Answer()
    async for event in events:
        if isinstance(event, Failed):
            raise event.error
        if isinstance(event, Finished):
            return _completion(answer, event, generation, head)
        answer.add(event)
    raise AssertionError("a generation ends with Finished or Failed")


def report(generation: Generation, cut_calls: list[int]) -> dict[str, Any]:
    """The extension object ``interlock``; empty when there is nothing to say.

    notes: how the request was read. tools: that calls were held to the grammar, and by which rule.
    incomplete_tool_calls: indices of calls that were cut off; their arguments are no JSON.
    """
    out: dict[str, Any] = {}
    if generation.notes:
        out["notes"] = list(generation.notes)
    if generation.tools.constrained:
        out["tools"] = {"constrained": True, "reason": generation.tools.constrained_reason}
    if cut_calls:
        out["incomplete_tool_calls"] = cut_calls
    return {"interlock": out} if out else {}


def usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _completion(answer: _Answer, finished: Finished, generation: Generation, head: Head) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": _message(answer, head.reasoning_field),
        "logprobs": None,
        "finish_reason": finished.reason,
    }
    return head.object(
        "chat.completion",
        choices=[choice],
        usage=usage_object(finished.usage),
        **report(generation, answer.cut_calls()),
    )


def _message(answer: _Answer, reasoning_field: ReasoningField) -> dict[str, Any]:
    text = "".join(answer.text)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": text if text or not answer.calls else None,
        "refusal": None,
    }
    if answer.reasoning:
        message[reasoning_field] = "".join(answer.reasoning)
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": called.id,
                "type": "function",
                "function": {"name": called.name, "arguments": "".join(called.arguments)},
            }
            for _, called in sorted(answer.calls.items())
        ]
    return message
