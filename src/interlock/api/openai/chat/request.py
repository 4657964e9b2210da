"""A decoded body to ``GenerateRequest``: the one place where a chat completion request is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.api.fields import ignored, ignored_header, refuse_unsupported
from interlock.api.json_body import decode_object
from interlock.api.openai.chat.fields import REFUSED
from interlock.api.openai.chat.messages import read_messages
from interlock.api.openai.chat.wire import SCHEMAS_AS_TEXT, WireChatRequest
from interlock.api.openai.generation import read_include_usage, read_num_answers
from interlock.api.openai.output_format import read_output_format, read_policy
from interlock.api.openai.prompt_logprobs import read_prompt_logprobs
from interlock.api.openai.tools import read_tool_choice, read_tools
from interlock.api.places import Places
from interlock.api.reading import read_reports, read_stop, same, validated
from interlock.api.sampling import read_sampling, read_text_options
from interlock.core.request import GenerateRequest, ReasoningOptions
from interlock.errors import InterlockError
from interlock.serving.fan_out import fan_out

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
    """A request and what only its answer's shape depends on. n: answers. ignored: value of the response header.
    max_tokens_field: under which of its names the client gave the limit."""

    request: GenerateRequest
    n: int
    stream: bool
    include_usage: bool
    ignored: str
    max_tokens_field: str

    @property
    def requests(self) -> tuple[GenerateRequest, ...]:
        return fan_out(self.request, self.n)

    def locate(self, error: InterlockError) -> InterlockError:
        return Places((), ((r"^max_tokens$", self.max_tokens_field), (r"\.loads\[\d+\]", ".content"))).of(error)


def read_chat_call(body: bytes, *, request_id: str, max_nesting: int) -> ChatCall:
    """Raises ``InterlockError`` with ``param`` set for everything the wire format can show to be wrong."""
    data = decode_object(body, SCHEMAS_AS_TEXT, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)  # first: `functions` without `tools` deserves the better message
    wire = validated(WireChatRequest, data)
    include_usage = read_include_usage(wire)
    return ChatCall(
        request=_generate_request(wire, request_id, max_nesting),
        n=read_num_answers(wire),
        stream=bool(wire.stream),
        include_usage=include_usage,
        ignored=ignored_header(ignored(wire, REFUSED)),
        max_tokens_field="max_tokens" if wire.max_completion_tokens is None else "max_completion_tokens",
    )


def _generate_request(wire: WireChatRequest, request_id: str, max_nesting: int) -> GenerateRequest:
    kwargs = wire.chat_template_kwargs or {}
    return GenerateRequest(
        request_id=request_id,
        model=wire.model,
        messages=read_messages(wire.messages, max_nesting=max_nesting),
        tools=read_tools(wire.tools, "tools"),
        tool_choice=read_tool_choice(wire.tool_choice),
        parallel_tool_calls=wire.parallel_tool_calls,
        tool_constraints=wire.tool_constraints,
        output_format=read_output_format(wire, max_nesting=max_nesting),
        json_policy=read_policy(wire),
        reports=read_reports(wire.interlock, has_trace=True),
        sampling=read_sampling(wire, _logprobs(wire), wire.interlock, read_prompt_logprobs(wire)),
        text=read_text_options(wire),
        reasoning=_reasoning(wire, kwargs),
        max_tokens=same(wire, "max_completion_tokens", "max_tokens"),
        stop=read_stop(wire.stop),
        priority=wire.priority or 0,
        timeout_s=wire.timeout,
        template_kwargs=_template_kwargs(kwargs),
    )


def _logprobs(wire: WireChatRequest) -> int | None:
    if wire.logprobs:
        return wire.top_logprobs or 0
    if wire.top_logprobs:
        raise InterlockError(
            "invalid_value", "top_logprobs is only allowed with logprobs: true", param="top_logprobs"
        )
    return None


def _reasoning(wire: WireChatRequest, kwargs: Mapping[str, Any]) -> ReasoningOptions:
    effort = wire.reasoning_effort
    enabled, field = (False if effort == "none" else None), "reasoning_effort"
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
        enabled, field = value, param
    return ReasoningOptions(
        enabled=enabled,
        param=field,
        effort=None if effort == "none" else effort,
        budget=same(wire, "thinking_budget", "thinking_token_budget"),
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
