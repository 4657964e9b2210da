"""A decoded body to ``GenerateRequest``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.api.fields import ignored, ignored_header, refuse_unsupported, unsupported
from interlock.api.json_body import JsonText, decode_object
from interlock.api.ollama.wire import (
    CHAT_AS_TEXT,
    GENERATE_AS_TEXT,
    REFUSED,
    REFUSED_OPTIONS,
    WireChatRequest,
    WireGenerateRequest,
    WireMessage,
    WireOptions,
    WireRequest,
)
from interlock.api.openai.tools import read_tools
from interlock.api.places import Places
from interlock.api.reading import read_json_policy, read_reports, read_stop, same, validated
from interlock.api.sampling import read_sampling, read_text_options
from interlock.api.schemas import schema_text
from interlock.api.wire import WireSampling
from interlock.core.messages import Message, ToolCall
from interlock.core.output_format import JsonObjectFormat, JsonSchemaFormat, OutputFormat, TextFormat
from interlock.core.request import GenerateRequest, ReasoningOptions
from interlock.errors import InterlockError

_NAMES = (
    (r"^max_tokens$", "options.num_predict"),
    (r"^repetition_penalty$", "options.repeat_penalty"),
    (rf"^(?=(?:stop|{'|'.join(WireSampling.model_fields)})$)", "options."),
    (r"^(?:enable_thinking|reasoning_effort)$", "think"),
)
_NAMES_OF_GENERATE = ((r"^messages$", "prompt"), *_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaCall:
    """A request and what its answer's shape depends on. model: as the client wrote it. loads: nothing is asked, the
    model is only to be loaded; a token is generated and not shown. names: of fields at this endpoint."""

    request: GenerateRequest
    model: str
    stream: bool
    ignored: str
    names: tuple[tuple[str, str], ...]
    loads: bool = False

    @property
    def requests(self) -> tuple[GenerateRequest, ...]:
        return (self.request,)

    def locate(self, error: InterlockError) -> InterlockError:
        return Places((), self.names).of(error)


def read_chat_call(body: bytes, *, request_id: str, max_nesting: int) -> OllamaCall:
    """Raises ``InterlockError`` with ``param`` set for everything the wire format can show to be wrong."""
    wire = validated(WireChatRequest, _decoded(body, CHAT_AS_TEXT, max_nesting))
    return _call(
        wire,
        request_id,
        loads=not wire.messages,
        messages=_messages(wire.messages) or (Message(role="user", content=""),),
        tools=read_tools(wire.tools, "tools") if wire.tools else None,
    )


def read_generate_call(body: bytes, *, request_id: str, max_nesting: int) -> OllamaCall:
    """The same for ``/api/generate``: one message, or with ``raw`` a prompt as it is."""
    wire = validated(WireGenerateRequest, _decoded(body, GENERATE_AS_TEXT, max_nesting))
    if wire.raw:
        if wire.system is not None:
            raise InterlockError(
                "conflicting_parameters", "a raw prompt has no place for `system`", param="system"
            )
        return _call(wire, request_id, prompt=wire.prompt)
    loads = not wire.prompt and wire.system is None
    system = () if wire.system is None else (Message(role="system", content=wire.system),)
    return _call(wire, request_id, loads=loads, messages=(*system, Message(role="user", content=wire.prompt)))


def model_name(name: str) -> str:
    """Without the tag that clients add by themselves."""
    return name.removesuffix(":latest")


def _decoded(body: bytes, shape: Any, max_nesting: int) -> dict[str, Any]:
    data = decode_object(body, shape, max_nesting=max_nesting)
    refuse_unsupported(data, REFUSED)
    if isinstance(data.get("options"), dict):
        refuse_unsupported(data["options"], REFUSED_OPTIONS, "options.")
    return data


def _call(wire: WireRequest, request_id: str, *, loads: bool = False, **fields: Any) -> OllamaCall:
    options = wire.options or WireOptions()
    known = {f"options.{name}" for name in REFUSED_OPTIONS}
    request = GenerateRequest(
        request_id=request_id,
        model=model_name(wire.model),
        output_format=_format(wire.format),
        json_policy=read_json_policy(wire.interlock),
        reports=read_reports(wire.interlock, has_trace=False),
        sampling=replace(
            read_sampling(
                options, (wire.top_logprobs or 0) if wire.logprobs else None, wire.interlock, prefix="options."
            ),
            repetition_penalty=same(options, "repeat_penalty", "repetition_penalty"),
        ),
        text=read_text_options(options),
        reasoning=_reasoning(wire.think),
        # -1 and -2 mean as many as there is room for.
        max_tokens=1 if loads else None if options.num_predict in (-1, -2) else options.num_predict,
        stop=read_stop(options.stop, "options.stop"),
        priority=wire.priority or 0,
        timeout_s=wire.timeout,
        **fields,
    )
    return OllamaCall(
        request=request,
        model=wire.model,
        stream=wire.stream is not False,
        names=_NAMES_OF_GENERATE if isinstance(wire, WireGenerateRequest) else _NAMES,
        loads=loads,
        ignored=ignored_header(name for name in ignored(wire, REFUSED) if name not in known),
    )


def _messages(wire: Sequence[WireMessage]) -> tuple[Message, ...]:
    """Calls and results have no ids here: a result belongs to the first call of its tool that has none yet."""
    out = []
    waiting: list[ToolCall] = []
    num_calls = 0
    for index, message in enumerate(wire):
        path = f"messages[{index}]"
        if message.images:
            raise unsupported(f"{path}.images", "only text is read")
        calls = []
        for at, call in enumerate(message.tool_calls or ()):
            arguments = call.function.arguments or JsonText("{}")
            if arguments.kind != "object":
                param = f"{path}.tool_calls[{at}].function.arguments"
                raise InterlockError("invalid_messages", f"{param} must be an object", param=param)
            call_id = call.id or f"call_{num_calls}"
            calls.append(ToolCall(id=call_id, name=call.function.name, arguments=str(arguments)))
            num_calls += 1
        waiting += calls
        out.append(
            Message(
                role=message.role,
                content=message.content if message.content or not calls else None,
                reasoning=message.thinking or None,
                tool_calls=tuple(calls),
                tool_call_id=_answered(message, waiting, path) if message.role == "tool" else None,
            )
        )
    return tuple(out)


def _answered(message: WireMessage, waiting: list[ToolCall], path: str) -> str:
    for call in waiting:
        if message.tool_call_id in (None, call.id) and message.tool_name in (None, call.name):
            waiting.remove(call)
            return call.id
    raise InterlockError(
        "invalid_messages", f"{path} answers no call of an earlier message", param=f"{path}.tool_name"
    )


def _format(wire: JsonText | None) -> OutputFormat:
    if wire is None or wire == '""':
        return TextFormat()
    if wire == '"json"':
        return JsonObjectFormat()
    if wire.kind == "string":
        raise InterlockError("invalid_value", "format must be `json` or a JSON Schema", param="format")
    return JsonSchemaFormat(schema=schema_text(wire, "format"), param="format")


def _reasoning(think: bool | str | None) -> ReasoningOptions:
    if isinstance(think, str):
        return ReasoningOptions(effort=think)
    return ReasoningOptions(enabled=think, param="think")
