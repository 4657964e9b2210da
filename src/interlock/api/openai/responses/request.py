"""A decoded body to ``GenerateRequest``: the one place where a request for a response is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pydantic import TypeAdapter

from interlock.api.fields import ignored, ignored_header, refuse_unsupported
from interlock.api.json_body import JsonText, decode_object
from interlock.api.openai.responses.items import read_items
from interlock.api.openai.responses.store import ResponseStore
from interlock.api.openai.responses.tools import TOOL_KINDS, custom_names, read_tools
from interlock.api.openai.responses.wire import (
    ITEMS_AS_TEXT,
    KEPT_AS_TEXT,
    REFUSED,
    REFUSED_IN_TEXT,
    WireItem,
    WireResponsesRequest,
    WireTextFormat,
)
from interlock.api.openai.tools import read_tool_choice
from interlock.api.places import Places
from interlock.api.reading import read_json_policy, read_reports, read_stop, validated
from interlock.api.sampling import read_sampling, read_text_options
from interlock.api.schemas import schema_text
from interlock.core.messages import Message
from interlock.core.output_format import JsonObjectFormat, JsonSchemaFormat, OutputFormat, TextFormat
from interlock.core.request import GenerateRequest, ReasoningOptions
from interlock.errors import InterlockError

_LOGPROBS = "message.output_text.logprobs"
_ITEMS = TypeAdapter(list[WireItem])
_NAMES = (
    (r"\.function\.", "."),
    (r"\.tool_call_id$", ".call_id"),
    (r"^messages$", "input"),
    (r"^max_tokens$", "max_output_tokens"),
    (r"^reasoning_effort$", "reasoning.effort"),
    (r"^enable_thinking$", "reasoning"),
    (r"\.tool_calls\[\d+\]", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesCall:
    """A request and what its answer's shape depends on.

    echo: the fields of the request that a response object repeats. input_items: this request's own, as JSON.
    custom: names of custom tools. store: keep the response. places: of the messages in the body.
    """

    request: GenerateRequest
    stream: bool
    ignored: str
    echo: dict[str, Any]
    input_items: bytes
    custom: frozenset[str]
    store: bool
    places: tuple[str, ...]

    @property
    def requests(self) -> tuple[GenerateRequest, ...]:
        return (self.request,)

    def locate(self, error: InterlockError) -> InterlockError:
        definitions = tuple(
            (rf"^tools\[{index}\]\.function\.parameters", f"tools[{index}].format.definition")
            for index, tool in enumerate(self.request.tools or ())
            if tool.name in self.custom
        )
        return Places(self.places, definitions + _NAMES).of(error)


def read_responses_call(
    body: bytes, store: ResponseStore, *, request_id: str, max_nesting: int
) -> ResponsesCall:
    """Raises ``InterlockError`` with ``param`` set for everything the wire format can show to be wrong."""
    data = decode_object(body, KEPT_AS_TEXT, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    if isinstance(data.get("text"), dict):
        refuse_unsupported(data["text"], REFUSED_IN_TEXT, "text.")
    wire = validated(WireResponsesRequest, data)
    items = [*_earlier(wire, store, max_nesting), *_own_items(wire)]
    placed = [] if wire.instructions is None else [("instructions", _system(wire.instructions))]
    placed += read_items(items, max_nesting=max_nesting)
    declared = [*(wire.tools or ()), *(tool for _, item in items for tool in item.tools or ())]
    return ResponsesCall(
        request=_generate_request(wire, request_id, tuple(message for _, message in placed)),
        stream=bool(wire.stream),
        ignored=ignored_header(_ignored(wire)),
        echo=_echo(wire, data),
        input_items=_encode(data["input"] if isinstance(wire.input, list) else [_message(wire.input)]),
        custom=custom_names(declared),
        store=wire.store is not False,
        places=tuple(place for place, _ in placed),
    )


def _generate_request(
    wire: WireResponsesRequest, request_id: str, messages: tuple[Message, ...]
) -> GenerateRequest:
    effort = wire.reasoning.effort if wire.reasoning is not None else None
    return GenerateRequest(
        request_id=request_id,
        model=wire.model,
        messages=messages,
        tools=read_tools(wire.tools, "tools") if wire.tools else None,
        tool_choice=read_tool_choice(wire.tool_choice, TOOL_KINDS),
        parallel_tool_calls=wire.parallel_tool_calls,
        tool_constraints=wire.tool_constraints,
        output_format=_output_format(wire.text.format if wire.text is not None else None),
        json_policy=read_json_policy(wire.interlock),
        reports=read_reports(wire.interlock, has_trace=False),
        sampling=read_sampling(wire, _logprobs(wire), wire.interlock),
        text=read_text_options(wire),
        stop=read_stop(wire.stop),
        reasoning=ReasoningOptions(
            enabled=False if effort == "none" else None,
            param="reasoning.effort",
            effort=None if effort == "none" else effort,
            budget=wire.thinking_budget,
        ),
        max_tokens=wire.max_output_tokens,
        priority=wire.priority or 0,
        timeout_s=wire.timeout,
    )


def _own_items(wire: WireResponsesRequest) -> list[tuple[str, WireItem]]:
    if isinstance(wire.input, str):
        return [("input", WireItem(role="user", content=wire.input))]
    return [(f"input[{index}]", item) for index, item in enumerate(wire.input)]


def _earlier(
    wire: WireResponsesRequest, store: ResponseStore, max_nesting: int
) -> Iterator[tuple[str, WireItem]]:
    if wire.previous_response_id is None:
        return
    for response in store.chain(wire.previous_response_id):
        for items in (response.input, response.output):
            data = decode_object(b'{"items":' + items + b"}", {"items": ITEMS_AS_TEXT}, max_nesting=max_nesting)
            for item in _ITEMS.validate_python(data["items"]):
                yield "previous_response_id", item


def _ignored(wire: WireResponsesRequest) -> Iterator[str]:
    yield from (name for name in ignored(wire, REFUSED) if name != "text.verbosity")
    yield from (f"include.{name}" for name in wire.include or () if name != _LOGPROBS)


def _output_format(wire: WireTextFormat | None) -> OutputFormat:
    param = "text.format.schema"
    if wire is None or wire.type == "text":
        _refuse_stray_schema(wire, param)
        return TextFormat(asked=wire is not None)
    if wire.type == "json_object":
        _refuse_stray_schema(wire, param)
        return JsonObjectFormat()
    if wire.type != "json_schema":
        raise InterlockError(
            "invalid_value",
            f"text.format.type `{wire.type[:100]}` is not text, json_object or json_schema",
            param="text.format.type",
        )
    if wire.schema_ is None:
        raise InterlockError("missing_field", f"{param} is missing", param=param)
    return JsonSchemaFormat(
        schema=schema_text(wire.schema_, param), name=wire.name, strict=wire.strict, param=param
    )


def _refuse_stray_schema(wire: WireTextFormat | None, param: str) -> None:
    if wire is not None and wire.schema_ is not None:
        raise InterlockError(
            "conflicting_parameters",
            f"{param} does not belong to text.format.type `{wire.type}`",
            param=param,
            hint="use type `json_schema`",
        )


def _logprobs(wire: WireResponsesRequest) -> int | None:
    asked = wire.top_logprobs is not None or _LOGPROBS in (wire.include or ())
    return (wire.top_logprobs or 0) if asked else None


def _system(text: str) -> Message:
    return Message(role="system", content=text)


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _echo(wire: WireResponsesRequest, data: dict[str, Any]) -> dict[str, Any]:
    text = wire.text.format if wire.text is not None else None
    return {
        "model": wire.model,
        "instructions": wire.instructions,
        "max_output_tokens": wire.max_output_tokens,
        "metadata": wire.metadata or {},
        "parallel_tool_calls": wire.parallel_tool_calls is not False,
        "previous_response_id": wire.previous_response_id,
        "reasoning": {"effort": wire.reasoning.effort if wire.reasoning else None, "summary": None},
        "store": wire.store is not False,
        "temperature": 1.0 if wire.temperature is None else wire.temperature,
        "text": {"format": {"type": "text"} if text is None else _raw(data["text"]["format"])},
        "tool_choice": wire.tool_choice or ("auto" if wire.tools else "none"),
        "tools": _raw(data.get("tools") or []),
        "top_logprobs": wire.top_logprobs or 0,
        "top_p": 1.0 if wire.top_p is None else wire.top_p,
        "truncation": "disabled",
    }


def _encode(items: Sequence[Any]) -> bytes:
    return msgspec.json.encode(_raw(items))


def _raw(value: Any) -> Any:
    """``value`` for encoding: schemas go out as they came."""
    match value:
        case JsonText():
            return msgspec.Raw(value.encode())
        case dict():
            return {key: _raw(item) for key, item in value.items()}
        case list():
            return [_raw(item) for item in value]
    return value
