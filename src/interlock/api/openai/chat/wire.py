"""The body of ``POST /v1/chat/completions``, as OpenAI documents it plus Interlock's own fields.

Types only; what the values mean is read in ``request``. Fields that are not here are in ``fields``.
Absent and ``null`` are the same.
"""

from __future__ import annotations

from typing import Any, Literal

from interlock.api.json_body import Shape
from interlock.api.openai.wire import FORMATS_AS_TEXT, TOOLS_AS_TEXT, WireGeneration, WireTool
from interlock.api.wire import Int, Wire


class WireCalledFunction(Wire):
    name: str
    arguments: str


class WireToolCall(Wire):
    id: str
    type: str = "function"
    function: WireCalledFunction | None = None


class WirePart(Wire):
    type: str
    text: str | None = None
    refusal: str | None = None
    # tool_reference
    name: str | None = None
    tool_name: str | None = None


class WireMessage(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[WirePart] | None = None
    name: str | None = None
    tool_calls: list[WireToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    function_call: Any = None
    tools: list[WireTool] | None = None


class WireChatRequest(WireGeneration):
    messages: list[WireMessage]
    tools: list[WireTool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    tool_constraints: Literal["auto", "all", "off"] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    include_reasoning: bool | None = None
    thinking_budget: Int | None = None
    thinking_token_budget: Int | None = None
    max_tokens: Int | None = None
    max_completion_tokens: Int | None = None
    logprobs: bool | None = None
    top_logprobs: Int | None = None


SCHEMAS_AS_TEXT: Shape = {**FORMATS_AS_TEXT, "tools": TOOLS_AS_TEXT, "messages": [{"tools": TOOLS_AS_TEXT}]}
