"""Events of a generation to ``chat.completion.chunk`` events, in the order they come.

The id, type and name of a call are in its first delta only; later deltas have the index and a piece of the
arguments. Every stream ends with a finish reason for each answer or an error event, and then ``[DONE]``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from interlock import log
from interlock.api.answer import remarks, report, trace_object
from interlock.api.context import Generation, ReasoningField
from interlock.api.errors import error_body, internal_error
from interlock.api.openai.chat.response import logprobs_object
from interlock.api.openai.head import Head, usage_object
from interlock.api.sse import DONE, encode
from interlock.core.events import (
    Event,
    Failed,
    Finished,
    PromptLogprobs,
    ReasoningDelta,
    ScoredToken,
    TextDelta,
    TokenLogprobs,
    TokenTraced,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.usage import Usage

_LOG = log.get(__name__)


async def stream_chunks(
    events: AsyncIterator[tuple[int, Event]],
    *,
    include_usage: bool,
    generation: Generation,
    head: Head,
    n: int,
    reasoning_field: ReasoningField,
) -> AsyncGenerator[bytes, None]:
    """Encoded server-sent events."""
    extra = {"usage": None} if include_usage else {}
    choices = [_Choice(index, head, reasoning_field, extra) for index in range(n)]
    usages: dict[int, Usage] = {}
    try:
        for choice in choices:
            yield encode(choice.delta({"role": "assistant", "content": ""}))
        async for index, event in events:
            if isinstance(event, Finished):
                usages[index] = event.usage
            for payload in choices[index].payloads(event, generation):
                yield encode(payload)
        if include_usage and len(usages) == n:
            usage = usage_object(usages[index] for index in range(n))
            yield encode(head.object("chat.completion.chunk", choices=[], usage=usage))
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("answer %s could not be written", head.id)
        yield encode(error_body(internal_error()))
    yield DONE


class _Choice:
    """Makes the chunks of one answer. With usage asked for, all but the last of the stream have ``usage: null``."""

    def __init__(self, index: int, head: Head, reasoning_field: ReasoningField, extra: dict[str, Any]) -> None:
        self._index = index
        self._head = head
        self._reasoning_field = reasoning_field
        self._extra = extra
        self._open_calls: list[int] = []
        self._tokens: list[ScoredToken] = []  # scores of text that comes next

    def payloads(self, event: Event, generation: Generation) -> list[dict[str, Any]]:
        match event:
            case Finished(reason=reason, validity=validity, timings=timings):
                told = report(generation, self._open_calls, validity, timings)
                return [{**self.delta({}, reason), **told}]
            case TokenTraced():
                return [self._traced(event)]
            case Failed(error=error):
                return [error_body(error)]
            case ToolCallEnd(index=index):
                self._open_calls.remove(index)
            case TokenLogprobs(tokens=tokens):
                self._tokens.extend(tokens)
            case PromptLogprobs():  # not in streams: the request says so
                pass
            case _:
                return [self._delta_of(event)]
        return []

    def delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        tokens, self._tokens = self._tokens, []
        choice = {
            "index": self._index,
            "delta": delta,
            "logprobs": logprobs_object(tokens) if tokens else None,
            "finish_reason": finish_reason,
        }
        return self._head.object("chat.completion.chunk", choices=[choice], **self._extra)

    def _traced(self, event: TokenTraced) -> dict[str, Any]:
        choice = {"index": self._index, "delta": {}, "logprobs": None, "finish_reason": None}
        told = remarks([], None, trace=[trace_object(event)])
        return self._head.object("chat.completion.chunk", choices=[choice], **self._extra, **told)

    def _delta_of(
        self, event: TextDelta | ReasoningDelta | ToolCallStart | ToolCallArguments
    ) -> dict[str, Any]:
        match event:
            case TextDelta(text=text):
                return self.delta({"content": text})
            case ReasoningDelta(text=text):
                return self.delta({self._reasoning_field: text})
            case ToolCallStart(index=index, id=call_id, name=name):
                self._open_calls.append(index)
                function = {"name": name, "arguments": ""}
                return self._tool_call(
                    {"index": index, "id": call_id, "type": "function", "function": function}
                )
            case ToolCallArguments(index=index, text=text):
                return self._tool_call({"index": index, "function": {"arguments": text}})

    def _tool_call(self, tool_call: dict[str, Any]) -> dict[str, Any]:
        return self.delta({"tool_calls": [tool_call]})
