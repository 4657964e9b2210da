"""The body of ``POST /v1/responses``, as OpenAI documents it plus Interlock's own fields. Types only."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from interlock.api.fields import Refused, RefusedFields
from interlock.api.json_body import KEPT, Shape
from interlock.api.openai.refused import COMMON, NO_PROMPT_LOGPROBS
from interlock.api.wire import Int, Schema, Wire, WireInterlock, WireSampling, WireSchedule


class WirePart(Wire):
    type: str
    text: str | None = None
    refusal: str | None = None


class WireToolFormat(Wire):
    type: Literal["text", "grammar"]
    syntax: str | None = None
    definition: str | None = None


class WireTool(Wire):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None
    format: WireToolFormat | None = None
    defer_loading: bool | None = None


class WireItem(Wire):
    """An input item of any type; which fields it needs depends on the type."""

    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[WirePart] | None = None
    id: str | None = None
    status: str | None = None
    # calls and their results
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    input: str | None = None
    output: str | list[WirePart] | None = None
    # reasoning
    summary: list[WirePart] | None = None
    encrypted_content: str | None = None
    # additional_tools
    tools: list[WireTool] | None = None


class WireTextFormat(Wire):
    type: str
    name: str | None = None
    schema_: Schema | None = Field(default=None, alias="schema")
    strict: bool | None = None


class WireText(Wire):
    format: WireTextFormat | None = None


class WireReasoning(Wire):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


class WireResponsesRequest(WireSampling, WireSchedule):
    """stop, thinking_budget, tool_constraints, interlock: Interlock's own."""

    model: str
    input: str | list[WireItem]
    instructions: str | None = None
    tools: list[WireTool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    text: WireText | None = None
    reasoning: WireReasoning | None = None
    include: list[str] | None = None
    max_output_tokens: Int | None = None
    metadata: dict[str, str] | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    stream: bool | None = None
    stop: str | list[str] | None = None
    top_logprobs: Int | None = None
    thinking_budget: Int | None = None
    tool_constraints: Literal["auto", "all", "off"] | None = None
    interlock: WireInterlock | None = None


TOOLS_AS_TEXT: Shape = [{"parameters": KEPT}]
ITEMS_AS_TEXT: Shape = [{"tools": TOOLS_AS_TEXT}]

KEPT_AS_TEXT: Shape = {
    "input": ITEMS_AS_TEXT,
    "tools": TOOLS_AS_TEXT,
    "text": {"format": {"schema": KEPT}},
}

_FORMAT = "use text.format"

REFUSED: RefusedFields = {
    **COMMON,
    **NO_PROMPT_LOGPROBS,
    "background": Refused((False,)),
    "conversation": Refused((), "use previous_response_id"),
    "context_management": Refused((), "shorten the conversation in the client"),
    "prompt": Refused((), "use instructions and input"),
    "max_tool_calls": Refused(),
    "moderation": Refused(),
    "messages": Refused((), "use input"),
    "max_tokens": Refused((), "use max_output_tokens"),
    "max_completion_tokens": Refused((), "use max_output_tokens"),
    "reasoning_effort": Refused((), "use reasoning.effort"),
    "response_format": Refused((), _FORMAT),
    "structured_outputs": Refused((), _FORMAT),
    "grammar": Refused((), _FORMAT),
    "json_schema": Refused((), _FORMAT),
    "n": Refused((1,), "send several requests"),
}
REFUSED_IN_TEXT: RefusedFields = {"verbosity": Refused(("medium",), "ask for it in the prompt")}
