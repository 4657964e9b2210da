"""A decoded body to ``GenerateRequest``: the one place where a chat completion request is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from interlock.api.json_body import decode_object
from interlock.api.openai.chat.fields import ignored, ignored_header, refuse_unsupported
from interlock.api.openai.chat.messages import read_messages
from interlock.api.openai.chat.output_format import read_output_format
from interlock.api.openai.chat.tools import read_tool_choice, read_tools
from interlock.api.openai.chat.wire import SCHEMAS_AS_TEXT, WireChatRequest
from interlock.api.validation import invalid_body
from interlock.core.request import GenerateRequest, JsonPolicy, ReasoningOptions
from interlock.core.sampling import SamplingOptions
from interlock.errors import InterlockError

MAX_STOP_STRINGS = 16
MAX_LOGIT_BIAS = 1024

# Template variables that the server sets itself.
_RESERVED_KWARGS: Mapping[str, str] = {
    "tools": "tools must be given in the field `tools` of the request",
    "messages": "messages must be given in the field `messages` of the request",
    "add_generation_prompt": "it is always true",
    "continue_final_message": "it is always false",
}
_THINKING_KWARGS = ("enable_thinking", "thinking")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """A request and what only its answer's shape depends on. ignored: value of the response header."""

    request: GenerateRequest
    stream: bool
    include_usage: bool
    ignored: str


def read_chat_call(body: bytes, *, request_id: str, max_nesting: int) -> ChatCall:
    """Raises ``InterlockError`` with ``param`` set for everything the wire format can show to be wrong."""
    data = decode_object(body, SCHEMAS_AS_TEXT, max_nesting=max_nesting)
    refuse_unsupported(data)  # first: `functions` without `tools` deserves the better message
    try:
        wire = WireChatRequest.model_validate(data)
    except ValidationError as error:
        raise invalid_body(error, data) from None
    options = wire.stream_options
    if options is not None and not wire.stream:
        raise InterlockError(
            "invalid_value", "stream_options is only allowed with stream: true", param="stream_options"
        )
    return ChatCall(
        request=_generate_request(wire, request_id, max_nesting),
        stream=bool(wire.stream),
        include_usage=bool(options and options.include_usage),
        ignored=ignored_header(ignored(wire)),
    )


def _generate_request(wire: WireChatRequest, request_id: str, max_nesting: int) -> GenerateRequest:
    own = wire.interlock
    kwargs = wire.chat_template_kwargs or {}
    return GenerateRequest(
        request_id=request_id,
        model=wire.model,
        messages=read_messages(wire.messages, max_nesting=max_nesting),
        tools=read_tools(wire.tools, "tools"),
        tool_choice=read_tool_choice(wire.tool_choice),
        parallel_tool_calls=wire.parallel_tool_calls,
        tool_constraints=wire.tool_constraints,
        output_format=read_output_format(
            wire.response_format, wire.structured_outputs, max_nesting=max_nesting
        ),
        json_policy=JsonPolicy() if own is None else JsonPolicy(**own.model_dump()),
        sampling=_sampling(wire),
        reasoning=_reasoning(wire, kwargs),
        max_tokens=_same(wire, "max_completion_tokens", "max_tokens"),
        stop=_stop(wire.stop),
        priority=wire.priority or 0,
        timeout_s=wire.timeout,
        template_kwargs=_template_kwargs(kwargs),
    )


def _sampling(wire: WireChatRequest) -> SamplingOptions:
    return SamplingOptions(
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        min_p=wire.min_p,
        frequency_penalty=wire.frequency_penalty,
        presence_penalty=wire.presence_penalty,
        repetition_penalty=wire.repetition_penalty,
        logit_bias=_logit_bias(wire.logit_bias or {}),
        seed=wire.seed,
    )


def _logit_bias(wire: Mapping[str, float]) -> tuple[tuple[int, float], ...]:
    if len(wire) > MAX_LOGIT_BIAS:
        raise InterlockError(
            "invalid_value", f"logit_bias has more than {MAX_LOGIT_BIAS} tokens", param="logit_bias"
        )
    for key in wire:
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise InterlockError(
                "invalid_value",
                f"logit_bias has the key {key[:40]!r}, which is no token id",
                param="logit_bias",
            )
    return tuple((int(key), bias) for key, bias in wire.items())


def _reasoning(wire: WireChatRequest, kwargs: Mapping[str, Any]) -> ReasoningOptions:
    effort = wire.reasoning_effort
    enabled = False if effort == "none" else None
    for name in _THINKING_KWARGS:
        value = kwargs.get(name)
        if value is None:
            continue
        param = f"chat_template_kwargs.{name}"
        if not isinstance(value, bool):
            raise InterlockError("invalid_value", f"{param} must be a boolean", param=param)
        if enabled not in (None, value):
            raise InterlockError(
                "conflicting_parameters", f"{param} contradicts another field about thinking", param=param
            )
        enabled = value
    return ReasoningOptions(
        enabled=enabled,
        effort=None if effort == "none" else effort,
        budget=_same(wire, "thinking_budget", "thinking_token_budget"),
        include=wire.include_reasoning is not False,
    )


def _template_kwargs(kwargs: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    for name in kwargs:
        if name in _RESERVED_KWARGS:
            raise InterlockError(
                "invalid_value",
                f"chat_template_kwargs must not have `{name}`: {_RESERVED_KWARGS[name]}",
                param=f"chat_template_kwargs.{name}",
            )
    return tuple(item for item in kwargs.items() if item[0] not in _THINKING_KWARGS)


def _stop(wire: str | list[str] | None) -> tuple[str, ...]:
    stop = (wire,) if isinstance(wire, str) else tuple(wire or ())
    if len(stop) > MAX_STOP_STRINGS:
        raise InterlockError("invalid_value", f"stop has more than {MAX_STOP_STRINGS} strings", param="stop")
    if "" in stop:
        raise InterlockError("invalid_value", "stop must not have an empty string", param="stop")
    return stop


def _same(wire: WireChatRequest, name: str, alias: str) -> int | None:
    """The value of a field that has two names; ``conflicting_parameters`` where they differ."""
    values: list[int] = [value for value in (getattr(wire, name), getattr(wire, alias)) if value is not None]
    if len(set(values)) > 1:
        raise InterlockError(
            "conflicting_parameters", f"{name} and {alias} differ; send one of them", param=name
        )
    return values[0] if values else None
