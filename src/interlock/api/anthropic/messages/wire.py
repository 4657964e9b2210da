"""The bodies of ``/v1/messages``, as Anthropic documents them plus Interlock's own fields. Types only."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from interlock.api.fields import Refused, RefusedFields
from interlock.api.json_body import KEPT, Shape
from interlock.api.wire import Int, Schema, Wire, WireInterlock, WireSampling, WireSchedule


class WireBlock(Wire):
    """A content block of any type; which fields it needs depends on the type."""

    type: str
    text: str | None = None
    # tool_use
    id: str | None = None
    name: str | None = None
    input: Schema | None = None
    # tool_result
    tool_use_id: str | None = None
    content: str | list[WireBlock] | None = None
    is_error: bool | None = None
    # tool_reference, in the content of a tool_result
    tool_name: str | None = None
    # thinking
    thinking: str | None = None
    signature: Any = None


class WireMessage(Wire):
    role: Literal["user", "assistant", "system"]
    content: str | list[WireBlock]


class WireTool(Wire):
    name: str
    type: str | None = None
    description: str | None = None
    input_schema: Schema | None = None
    strict: bool | None = None
    defer_loading: bool | None = None


class WireToolChoice(Wire):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class WireThinking(Wire):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Int | None = None
    display: Literal["summarized", "omitted"] | None = None


class WireFormat(Wire):
    type: Literal["json_schema"]
    schema_: Schema = Field(alias="schema")


class WireOutputConfig(Wire):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: WireFormat | None = None


class WireCountRequest(Wire):
    """tool_constraints, interlock: Interlock's own, as on the other endpoints."""

    model: str
    messages: list[WireMessage]
    system: str | list[WireBlock] | None = None
    tools: list[WireTool] | None = None
    tool_choice: WireToolChoice | None = None
    thinking: WireThinking | None = None
    output_config: WireOutputConfig | None = None
    output_format: WireFormat | None = None
    tool_constraints: Literal["auto", "all", "off"] | None = None
    interlock: WireInterlock | None = None


class WireMessagesRequest(WireSampling, WireSchedule, WireCountRequest):
    """``WireSchedule`` and most of ``WireSampling``: Interlock's own, as on the other endpoints."""

    max_tokens: Int
    stop_sequences: list[str] | None = None
    stream: bool | None = None


_INPUTS: Shape = [{"input": KEPT}]
_FORMAT: Shape = {"schema": KEPT}

KEPT_AS_TEXT: Shape = {
    "messages": [{"content": _INPUTS}],
    "tools": [{"input_schema": KEPT}],
    "output_format": _FORMAT,
    "output_config": {"format": _FORMAT},
}

_FORMAT_HINT = "use output_config.format"

REFUSED: RefusedFields = {
    "container": Refused(),
    "mcp_servers": Refused(([],), "connect to them in the client and give their tools in `tools`"),
    "response_format": Refused((), _FORMAT_HINT),
    "structured_outputs": Refused((), _FORMAT_HINT),
    "stop": Refused(([],), "use stop_sequences"),
    "n": Refused((1,), "send several requests"),
    "max_tokens_to_sample": Refused((), "use max_tokens"),
    "prompt": Refused((), "use messages"),
    "logprobs": Refused((False,)),
    "reasoning_effort": Refused((), "use output_config.effort"),
    "parallel_tool_calls": Refused((), "use tool_choice.disable_parallel_tool_use"),
}
