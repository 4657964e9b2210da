"""Events of a generation to content blocks: one at a time is open, each has the next index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from interlock.core.events import (
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)

# Clients send a thinking block back with its signature; nothing here depends on what it says.
SIGNATURE = "interlock"


class Blocks:
    """The content of one message so far, and the events that tell a client of it."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, Any]] = []
        self._pieces: list[str] = []
        self._open = ""  # type of the open block
        self._complete = True  # the open block may be ended

    def take(self, event: Event) -> Iterator[dict[str, Any]]:
        match event:
            case TextDelta(text=text):
                yield from self._begin("text", {"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": text}, text)
            case ReasoningDelta(text=text):
                yield from self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": text}, text)
            case ToolCallStart(id=call_id, name=name):
                yield from self.end()
                yield from self._begin(
                    "tool_use", {"type": "tool_use", "id": call_id, "name": name, "input": {}}
                )
                self._complete = False
            case ToolCallArguments(text=text):
                yield self._delta({"type": "input_json_delta", "partial_json": text}, text)
            case ToolCallEnd():
                self._complete = True
                yield from self.end()

    def end(self) -> Iterator[dict[str, Any]]:
        """End the open block, if there is one."""
        if not self._open:
            return
        if self._open == "thinking":
            yield self._delta({"type": "signature_delta", "signature": SIGNATURE}, "")
        yield {"type": "content_block_stop", "index": len(self._blocks) - 1}
        self._fill()
        self._open = ""

    @property
    def cut_call(self) -> list[int]:
        """The index among calls of one that began and did not end."""
        calls = [block for block in self._blocks if block["type"] == "tool_use"]
        return [] if self._complete else [len(calls) - 1]

    def content(self) -> list[dict[str, Any]]:
        """All blocks but a call that was cut off: its input is no object."""
        return self._blocks if self._complete else self._blocks[:-1]

    def _begin(self, kind: str, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._open == kind:
            return
        yield from self.end()
        self._open, self._pieces = kind, []
        yield {"type": "content_block_start", "index": len(self._blocks), "content_block": dict(block)}
        self._blocks.append(block)

    def _delta(self, delta: dict[str, Any], text: str) -> dict[str, Any]:
        self._pieces.append(text)
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _fill(self) -> None:
        text, block = "".join(self._pieces), self._blocks[-1]
        if self._open == "tool_use":
            block["input"] = msgspec.Raw(text.encode() or b"{}")  # as the model spelt it
        else:
            block[self._open] = text
        if self._open == "thinking":
            block["signature"] = SIGNATURE
