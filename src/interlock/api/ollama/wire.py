"""The bodies of ``/api/chat`` and ``/api/generate``, as Ollama documents them. Types only."""

from __future__ import annotations

from typing import Literal

from interlock.api.fields import Refused, RefusedFields
from interlock.api.json_body import KEPT, Shape
from interlock.api.openai.wire import TOOLS_AS_TEXT, WireTool
from interlock.api.wire import Int, Number, Schema, Wire, WireInterlock, WireSampling, WireSchedule


class WireFunction(Wire):
    name: str
    arguments: Schema | None = None


class WireCall(Wire):
    id: str | None = None
    function: WireFunction


class WireMessage(Wire):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[WireCall] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    images: list[str] | None = None


class WireOptions(WireSampling):
    """Those that say how to generate; how to load a model is the server's business. What Ollama has no name for is
    Interlock's own, as on the other endpoints; ``repetition_penalty`` is called ``repeat_penalty``."""

    num_predict: Int | None = None
    stop: list[str] | None = None
    repeat_penalty: Number | None = None


class WireRequest(WireSchedule):
    """What both endpoints take. interlock: our own options."""

    model: str
    format: Schema | None = None
    think: bool | Literal["low", "medium", "high", "max"] | None = None
    options: WireOptions | None = None
    stream: bool | None = None
    logprobs: bool | None = None
    top_logprobs: Int | None = None
    interlock: WireInterlock | None = None


class WireChatRequest(WireRequest):
    messages: list[WireMessage]
    tools: list[WireTool] | None = None


class WireGenerateRequest(WireRequest):
    prompt: str
    system: str | None = None
    raw: bool | None = None


CHAT_AS_TEXT: Shape = {
    "format": KEPT,
    "messages": [{"tool_calls": [{"function": {"arguments": KEPT}}]}],
    "tools": TOOLS_AS_TEXT,
}
GENERATE_AS_TEXT: Shape = {"format": KEPT}

REFUSED: RefusedFields = {
    "images": Refused(([],), "only text is read"),
    "suffix": Refused(("",), "there is no model here that fills in the middle"),
    "template": Refused(("",), "the model's own chat template is always used"),
    "context": Refused(([],), "use /api/chat with messages"),
    "tool_choice": Refused(("auto",), "use /v1/chat/completions"),
    "response_format": Refused((), "use format"),
}
REFUSED_OPTIONS: RefusedFields = {
    "tfs_z": Refused((1,)),
    "mirostat": Refused((0,)),
    "repeat_last_n": Refused((-1, 64), "the penalty goes over the whole text"),
    "penalize_newline": Refused((True,)),
}
