"""Events of a generation to output items: one at a time is open. Gives the events that tell a client of it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from typing import Any

from interlock.api.openai.head import token_objects
from interlock.api.openai.responses.custom import InputReader
from interlock.core.events import (
    Event,
    ReasoningDelta,
    ScoredToken,
    TextDelta,
    TokenLogprobs,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)

Payload = dict[str, Any]


class Output:
    """The output of one response so far. custom: names of custom tools."""

    def __init__(self, custom: Collection[str]) -> None:
        self.items: list[Payload] = []
        self._custom = custom
        self._open = ""  # type of the open item
        self._pieces: list[str] = []
        self._input: InputReader | None = None
        self._scores: list[ScoredToken] = []
        self._num_scores_sent = 0

    def take(self, event: Event) -> Iterator[Payload]:
        match event:
            case TextDelta(text=text):
                yield from self._begin("message", _message_item)
                scores, self._num_scores_sent = self._scores[self._num_scores_sent :], len(self._scores)
                yield self._delta("response.output_text.delta", text, logprobs=token_objects(scores))
            case TokenLogprobs(tokens=tokens):
                yield from self._begin("message", _message_item)
                self._scores += tokens
            case ReasoningDelta(text=text):
                yield from self._begin("reasoning", _reasoning_item)
                yield self._delta("response.reasoning_text.delta", text)
            case ToolCallStart(id=call_id, name=name):
                yield from self.end()
                yield from self._begin_call(call_id, name)
            case ToolCallArguments(text=text) if self._input is None:
                yield self._delta("response.function_call_arguments.delta", text)
            case ToolCallArguments(text=text):
                assert self._input is not None
                piece = self._input.push(text)
                if piece:
                    yield self._delta("response.custom_tool_call_input.delta", piece)
            case ToolCallEnd():
                yield from self.end()

    def end(self, *, cut: bool = False) -> Iterator[Payload]:
        """End the open item, if there is one. cut: the answer was cut off in it."""
        if not self._open:
            return
        item, text, status = self.items[-1], "".join(self._pieces), "incomplete" if cut else "completed"
        match self._open:
            case "message":
                scores = token_objects(self._scores)
                part: Payload = {"type": "output_text", "text": text, "annotations": [], "logprobs": scores}
                yield self._at("response.output_text.done", content_index=0, text=text, logprobs=scores)
                yield self._at("response.content_part.done", content_index=0, part=part)
                item["content"] = [part]
            case "reasoning":
                part = {"type": "reasoning_text", "text": text}
                yield self._at("response.reasoning_text.done", content_index=0, text=text)
                yield self._at("response.content_part.done", content_index=0, part=part)
                item["content"] = [part]
            case "function_call":
                if not cut:
                    yield self._at("response.function_call_arguments.done", name=item["name"], arguments=text)
                item["arguments"] = text
            case "custom_tool_call":
                if not cut:
                    yield self._at("response.custom_tool_call_input.done", input=text)
                item["input"] = text
        item["status"] = status
        self._open = ""
        yield {"type": "response.output_item.done", "output_index": len(self.items) - 1, "item": dict(item)}

    def _begin(self, kind: str, make: Any) -> Iterator[Payload]:
        if self._open == kind:
            return
        yield from self.end()
        yield self._added(kind, make())
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        if kind == "reasoning":
            part = {"type": "reasoning_text", "text": ""}
        yield self._at("response.content_part.added", content_index=0, part=part)

    def _begin_call(self, call_id: str, name: str) -> Iterator[Payload]:
        custom = name in self._custom
        kind = "custom_tool_call" if custom else "function_call"
        prefix, field = ("ctc", "input") if custom else ("fc", "arguments")
        item = {
            "id": _id(prefix),
            "type": kind,
            "status": "in_progress",
            "call_id": call_id,
            "name": name,
            field: "",
        }
        yield self._added(kind, item)
        self._input = InputReader() if custom else None

    def _added(self, kind: str, item: Payload) -> Payload:
        self._open, self._pieces = kind, []
        self._scores, self._num_scores_sent = [], 0
        self.items.append(item)
        return {
            "type": "response.output_item.added",
            "output_index": len(self.items) - 1,
            "item": dict(item),
        }

    def _delta(self, kind: str, text: str, **fields: Any) -> Payload:
        self._pieces.append(text)
        content = {"content_index": 0} if self._open in ("message", "reasoning") else {}
        return self._at(kind, **content, delta=text, **fields)

    def _at(self, kind: str, **fields: Any) -> Payload:
        return {
            "type": kind,
            "item_id": self.items[-1]["id"],
            "output_index": len(self.items) - 1,
            **fields,
        }


def _message_item() -> Payload:
    return {"id": _id("msg"), "type": "message", "status": "in_progress", "role": "assistant", "content": []}


def _reasoning_item() -> Payload:
    return {"id": _id("rs"), "type": "reasoning", "status": "in_progress", "summary": [], "content": []}


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"
