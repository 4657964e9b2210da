"""The body of ``POST /v1/completions``, as OpenAI documents it plus Interlock's own fields. Types only."""

from __future__ import annotations

from interlock.api.fields import Refused, RefusedFields
from interlock.api.json_body import Shape
from interlock.api.openai.refused import COMMON
from interlock.api.openai.wire import FORMATS_AS_TEXT, WireGeneration
from interlock.api.wire import Int

_CHAT = "use /v1/chat/completions"


class WireCompletionsRequest(WireGeneration):
    prompt: str | list[str] | list[Int] | list[list[Int]]
    max_tokens: Int | None = None
    echo: bool | None = None
    logprobs: Int | None = None


KEPT_AS_TEXT: Shape = FORMATS_AS_TEXT

REFUSED: RefusedFields = {
    **COMMON,
    "suffix": Refused(("",), "there is no model here that fills in the middle"),
    "prompt_embeds": Refused(),
    "messages": Refused((), _CHAT),
    "tools": Refused(([],), _CHAT),
    "tool_choice": Refused(("none",), _CHAT),
    "max_completion_tokens": Refused((), "use max_tokens"),
    "max_output_tokens": Refused((), "use max_tokens"),
    "top_logprobs": Refused((), "use logprobs"),
    "reasoning_effort": Refused((), _CHAT),
    "chat_template_kwargs": Refused(({},), _CHAT),
    "add_special_tokens": Refused((True,)),
}
