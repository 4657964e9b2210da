"""Deferred tools in the conversation: each is shown where it was loaded, by families that can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from interlock.core.messages import Message
from interlock.core.tools import ToolContext


def with_loaded_tools(messages: Sequence[Message], tools: ToolContext) -> tuple[Message, ...]:
    """The conversation with the tools that its tool results load, each behind the last of the results that follow each
    other. A result that says nothing else says which tools it loaded."""
    loaded = {tool.name: tool for tool in tools.effective_tools if tool.deferred}
    out = [_with_text(message) for message in messages]
    behind: list[str] = []
    for index, message in enumerate(out):
        behind += message.loads
        if index + 1 < len(out) and out[index + 1].role == "tool":
            continue
        found = tuple(loaded.pop(name) for name in dict.fromkeys(behind) if name in loaded)
        out[index] = replace(message, tools=(*message.tools, *found))
        behind = []
    return tuple(out)


def _with_text(message: Message) -> Message:
    if message.content or not message.loads:
        return message
    return replace(message, content=f"Tools loaded: {', '.join(message.loads)}")
