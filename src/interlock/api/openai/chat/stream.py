"""Events of a generation to ``chat.completion.chunk`` events, in the order they come.

The id, type and name of a call are in its first delta only; later deltas have the index and a piece of the
arguments. Every stream ends with a finish reason or an error event, and then ``[DONE]``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from interlock import log
from interlock.api.context import Generation
from interlock.api.errors import error_body, internal_error
from interlock.api.openai.chat.response import Head, report, usage_object
from interlock.api.sse import DONE, encode
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

_LOG = log.get(__name__)


async def stream_chunks(
    events: AsyncIterator[Event], *, include_usage: bool, generation: Generation, head: Head
) -> AsyncGenerator[bytes, None]:
    """Encoded server-sent events."""
    try:
        async for payload in _payloads(events, _Chunks(head, include_usage), generation):
            yield encode(payload)
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("answer %s could not be written", head.id)
        yield encode(error_body(internal_error()))
    yield DONE


async def _payloads(
    events: AsyncIterator[Event], chunks: _Chunks, generation: Generation
) -> AsyncIterator[dict[str, Any]]:
    yield chunks.delta({"role": "assistant", "content": ""})
    open_calls: list[int] = []
    async for event in events:
        match event:
            case Finished(reason=reason, usage=usage):
                yield {**chunks.delta({}, reason), **report(generation, open_calls)}
                if chunks.include_usage:
                    yield chunks.usage(usage)
            case Failed(error=error):
                yield error_body(error)
            case ToolCallEnd(index=index):
                open_calls.remove(index)
            case _:
                if isinstance(event, ToolCallStart):
                    open_calls.append(event.index)
                yield chunks.event(event)


class _Chunks:
    """Makes the chunks of one answer. With usage asked for, all but the last have ``usage: null``."""

    def __init__(self, head: Head, include_usage: bool) -> None:
        self.include_usage = include_usage
        self._head = head
        self._extra: dict[str, Any] = {"usage": None} if include_usage else {}

    def event(self, event: TextDelta | ReasoningDelta | ToolCallStart | ToolCallArguments) -> dict[str, Any]:
        match event:
            case TextDelta(text=text):
                return self.delta({"content": text})
            case ReasoningDelta(text=text):
                return self.delta({self._head.reasoning_field: text})
            case ToolCallStart(index=index, id=call_id, name=name):
                function = {"name": name, "arguments": ""}
                return self._tool_call(
                    {"index": index, "id": call_id, "type": "function", "function": function}
                )
            case ToolCallArguments(index=index, text=text):
                return self._tool_call({"index": index, "function": {"arguments": text}})

    def delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._head.object("chat.completion.chunk", choices=[choice], **self._extra)

    def usage(self, usage: Usage) -> dict[str, Any]:
        return self._head.object("chat.completion.chunk", choices=[], usage=usage_object(usage))

    def _tool_call(self, tool_call: dict[str, Any]) -> dict[str, Any]:
        return self.delta({"tool_calls": [tool_call]})
