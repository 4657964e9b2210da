"""Tools, tool choice, and the one object everything downstream of resolving reads: ``ToolContext``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

EMPTY_PARAMETERS = '{"type":"object","properties":{}}'

ToolChoiceMode = Literal["none", "auto", "required", "named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the model may call. ``parameters`` is the JSON text of its schema, key order kept.

    input_grammar: a Lark grammar that its only argument, the string ``input``, is held to, where ``parameters`` cannot
    say it. deferred: the model does not know of it before a message loads it.
    """

    name: str
    description: str | None = None
    parameters: str = EMPTY_PARAMETERS
    strict: bool | None = None
    input_grammar: str | None = None
    deferred: bool = False

    def schema(self) -> Any:
        """The parsed parameter schema (a fresh object on each call)."""
        return json.loads(self.parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """Which calls the caller wants.

    ``name`` is set for mode ``named``. ``allowed`` narrows modes ``auto`` and ``required`` to these
    names (OpenAI's ``allowed_tools``); ``None`` means every effective tool.
    """

    mode: ToolChoiceMode
    name: str | None = None
    allowed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Tools of a request after resolving. Made by ``resolve.tools`` and read by everything after it.

    ``effective_tools``: request tools first, then those that messages declare or load, in message order.
    ``paths``: where each of them stands in the request. ``deferred_tools``: declared, but not loaded by any message:
    neither in the prompt nor in the grammar.
    ``callable_tools``: what may be called after tool choice (subset of ``effective_tools``).
    ``constrained``: calls are held to the grammar; ``constrained_reason`` says by which rule.
    """

    initial_tools: tuple[Tool, ...] = ()
    effective_tools: tuple[Tool, ...] = ()
    paths: tuple[str, ...] = ()
    deferred_tools: tuple[Tool, ...] = ()
    callable_tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice(mode="none")
    parallel_tool_calls: bool = True
    constrained: bool = False
    constrained_reason: str = ""

    @property
    def call_required(self) -> bool:
        """True when the answer must contain at least one call."""
        return self.tool_choice.mode in ("required", "named")
