"""The body of ``POST /v1/chat/completions``, as OpenAI documents it plus Interlock's own fields.

Types only; what the values mean is read in ``request``. Fields that are not here are in ``fields``.
Absent and ``null`` are the same.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from interlock.api.json_body import KEPT, JsonText, Shape

# Wide enough for everything, narrow enough for every encoding below.
Int = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Schema = InstanceOf[JsonText]


class Wire(BaseModel):
    """A number in a string is no number. Unknown keys are kept to be reported; see ``fields.ignored``."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class WireFunction(Wire):
    name: str
    description: str | None = None
    parameters: Schema | None = None
    strict: bool | None = None
    defer_loading: bool | None = None


class WireTool(Wire):
    type: str
    function: WireFunction | None = None
    # where other APIs put them; read for the error message only
    name: Any = None
    parameters: Any = None
    strict: Any = None
    defer_loading: bool | None = None


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


class WireJsonSchema(Wire):
    name: str | None = None
    schema_: Schema | None = Field(default=None, alias="schema")
    strict: bool | None = None


class WireResponseFormat(Wire):
    type: str
    json_schema: WireJsonSchema | None = None
    schema_: Schema | None = Field(default=None, alias="schema")  # of json_object, as other servers have it


class WireGrammar(Wire):
    syntax: Literal["lark", "gbnf", "ebnf"]
    definition: str


class WireStructuredOutputs(Wire):
    json_: Schema | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | WireGrammar | None = None


class WireStreamOptions(Wire):
    include_usage: bool | None = None


class WireInterlock(Wire):
    model_config = ConfigDict(extra="forbid")

    open_objects: bool | None = None
    property_order: Literal["declared", "any"] | None = None
    whitespace: Literal["fixed", "flexible"] | None = None


class WireChatRequest(Wire):
    model: str
    messages: list[WireMessage]
    tools: list[WireTool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    tool_constraints: Literal["auto", "all", "off"] | None = None
    response_format: WireResponseFormat | None = None
    structured_outputs: WireStructuredOutputs | None = None
    interlock: WireInterlock | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    include_reasoning: bool | None = None
    thinking_budget: Int | None = None
    thinking_token_budget: Int | None = None
    max_tokens: Int | None = None
    max_completion_tokens: Int | None = None
    stop: str | list[str] | None = None
    seed: Int | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Int | None = None
    min_p: Number | None = None
    frequency_penalty: Number | None = None
    presence_penalty: Number | None = None
    repetition_penalty: Number | None = None
    logit_bias: dict[str, Number] | None = None
    stream: bool | None = None
    stream_options: WireStreamOptions | None = None
    priority: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    timeout: Annotated[Number, Field(gt=0)] | None = None


_TOOLS: Shape = [{"function": {"parameters": KEPT}}]

SCHEMAS_AS_TEXT: Shape = {
    "tools": _TOOLS,
    "messages": [{"tools": _TOOLS}],
    "response_format": {"schema": KEPT, "json_schema": {"schema": KEPT}},
    "structured_outputs": {"json": KEPT},
}
