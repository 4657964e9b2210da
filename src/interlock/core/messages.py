"""Messages of a conversation, in Interlock's own vocabulary (no vendor's)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from interlock.core.tools import Tool

Role = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call an assistant made in an earlier turn.

    ``arguments`` is JSON text of an object, already checked by the API layer, with the client's key
    order and number spelling kept.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. ``content`` is ``None`` only for an assistant that made calls.

    ``tools`` are tools a developer message declares, or that are loaded after a tool's result; ``loads`` are the names
    of deferred tools that a tool's result loads; ``tool_call_id`` is set on role ``tool`` only.
    """

    role: Role
    content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    tools: tuple[Tool, ...] = ()
    loads: tuple[str, ...] = ()
