"""A decoded body to ``GenerateRequest``, without a detour over another vendor's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from interlock.api.anthropic.messages.messages import read_messages
from interlock.api.anthropic.messages.wire import (
    KEPT_AS_TEXT,
    REFUSED,
    WireCountRequest,
    WireMessagesRequest,
    WireThinking,
    WireTool,
    WireToolChoice,
)
from interlock.api.fields import ignored, ignored_header, refuse_unsupported
from interlock.api.json_body import decode_object
from interlock.api.places import Places
from interlock.api.reading import read_json_policy, read_reports, read_stop, validated
from interlock.api.sampling import read_sampling, read_text_options
from interlock.api.schemas import parameters_text, schema_text
from interlock.core.output_format import JsonSchemaFormat, OutputFormat, TextFormat
from interlock.core.request import GenerateRequest, ReasoningOptions
from interlock.core.tools import Tool, ToolChoice
from interlock.errors import InterlockError

# Names of chat completions to those of this endpoint.
_NAMES = (
    (r"\.function\.parameters", ".input_schema"),
    (r"\.function\.", "."),
    (r"\.tool_call_id$", ".tool_use_id"),
    (r"^stop$", "stop_sequences"),
    (r"^thinking_budget$", "thinking.budget_tokens"),
    (r"^enable_thinking$", "thinking"),
    (r"^reasoning_effort$", "output_config.effort"),
    (r"\.tool_calls\[\d+\]", ".content"),
    (r"\.loads\[\d+\]", ".content"),
)
_SEARCH = "search in a tool of your own, and answer its call with tool_reference blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesCall:
    """A request and what its answer's shape depends on. places: of its messages in the body."""

    request: GenerateRequest
    stream: bool
    ignored: str
    places: tuple[str, ...]

    @property
    def requests(self) -> tuple[GenerateRequest, ...]:
        return (self.request,)

    def locate(self, error: InterlockError) -> InterlockError:
        return Places(self.places, _NAMES).of(error)


def read_messages_call(body: bytes, *, request_id: str, max_nesting: int) -> MessagesCall:
    """Raises ``InterlockError`` with ``param`` set for everything the wire format can show to be wrong."""
    data = decode_object(body, KEPT_AS_TEXT, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    wire = validated(WireMessagesRequest, data)
    request, places = _request(wire, request_id, wire.max_tokens)
    return MessagesCall(
        request=replace(
            request,
            sampling=read_sampling(wire),
            text=read_text_options(wire),
            stop=read_stop(wire.stop_sequences, "stop_sequences"),
            priority=wire.priority or 0,
            timeout_s=wire.timeout,
        ),
        stream=bool(wire.stream),
        ignored=ignored_header(ignored(wire, REFUSED)),
        places=places,
    )


def read_count_call(body: bytes, *, request_id: str, max_nesting: int) -> MessagesCall:
    """The same for ``count_tokens``, which needs no ``max_tokens``."""
    data = decode_object(body, KEPT_AS_TEXT, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    wire = validated(WireCountRequest, data)
    request, places = _request(wire, request_id, None)
    return MessagesCall(
        request=request, stream=False, ignored=ignored_header(ignored(wire, REFUSED)), places=places
    )


def _request(
    wire: WireCountRequest, request_id: str, max_tokens: int | None
) -> tuple[GenerateRequest, tuple[str, ...]]:
    """What both endpoints read, and the places of the messages."""
    placed = read_messages(wire.system, wire.messages)
    choice = wire.tool_choice
    request = GenerateRequest(
        request_id=request_id,
        model=wire.model,
        messages=tuple(message for _, message in placed),
        tools=_tools(wire.tools) if wire.tools else None,
        tool_choice=None if choice is None else _tool_choice(choice),
        parallel_tool_calls=False if choice is not None and choice.disable_parallel_tool_use else None,
        tool_constraints=wire.tool_constraints,
        output_format=_output_format(wire),
        json_policy=read_json_policy(wire.interlock),
        reports=read_reports(wire.interlock, has_trace=False),
        reasoning=_reasoning(wire, max_tokens),
        max_tokens=max_tokens,
    )
    return request, tuple(place for place, _ in placed)


def _tools(wire: Sequence[WireTool]) -> tuple[Tool, ...]:
    return tuple(_tool(tool, f"tools[{index}]") for index, tool in enumerate(wire))


def _tool(wire: WireTool, path: str) -> Tool:
    if wire.type not in (None, "custom"):
        raise InterlockError(
            "invalid_tools",
            f"tools of type `{wire.type[:100]}` are not supported, only those that the client runs",
            param=f"{path}.type",
            hint=_SEARCH if wire.type.startswith("tool_search_tool_") else None,
        )
    if wire.input_schema is None:
        raise InterlockError("missing_field", f"{path}.input_schema is missing", param=f"{path}.input_schema")
    return Tool(
        name=wire.name,
        description=wire.description,
        parameters=parameters_text(wire.input_schema, f"{path}.input_schema"),
        strict=wire.strict,
        deferred=bool(wire.defer_loading),
    )


def _tool_choice(wire: WireToolChoice) -> ToolChoice:
    if wire.type == "tool":
        if not wire.name:
            raise InterlockError("missing_field", "tool_choice.name is missing", param="tool_choice.name")
        return ToolChoice(mode="named", name=wire.name)
    if wire.name is not None:
        raise InterlockError(
            "invalid_value",
            f"tool_choice.name does not belong to tool_choice.type `{wire.type}`",
            param="tool_choice.name",
            hint="use type `tool`",
        )
    return ToolChoice(mode="required" if wire.type == "any" else wire.type)


def _output_format(wire: WireCountRequest) -> OutputFormat:
    found = {}
    if wire.output_format is not None:
        found["output_format"] = wire.output_format
    if wire.output_config is not None and wire.output_config.format is not None:
        found["output_config.format"] = wire.output_config.format
    if len(found) > 1:
        raise InterlockError(
            "conflicting_parameters",
            "output_format and output_config.format both constrain the answer",
            param="output_format",
            hint="send output_config.format",
        )
    for name, format_ in found.items():
        param = f"{name}.schema"
        return JsonSchemaFormat(schema=schema_text(format_.schema_, param), param=param)
    return TextFormat()


def _reasoning(wire: WireCountRequest, max_tokens: int | None) -> ReasoningOptions:
    effort = wire.output_config.effort if wire.output_config is not None else None
    thinking = wire.thinking
    if thinking is None:
        return ReasoningOptions(effort=effort)
    return ReasoningOptions(
        enabled={"enabled": True, "disabled": False, "adaptive": None}[thinking.type],
        param="thinking.type",
        effort=effort if thinking.type != "disabled" else None,
        budget=_budget(thinking, max_tokens),
        include=thinking.display != "omitted",
    )


def _budget(thinking: WireThinking, max_tokens: int | None) -> int | None:
    param, budget = "thinking.budget_tokens", thinking.budget_tokens
    if thinking.type != "enabled":
        if budget is not None:
            raise InterlockError(
                "invalid_value", f"{param} does not belong to thinking.type `{thinking.type}`", param=param
            )
        return None
    if budget is None:
        raise InterlockError("missing_field", f"{param} is missing", param=param)
    if budget < 1 or (max_tokens is not None and budget >= max_tokens):
        raise InterlockError(
            "invalid_value", f"{param} must be at least 1 and less than max_tokens, not {budget}", param=param
        )
    return budget
