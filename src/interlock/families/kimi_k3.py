"""Kimi K3: XTML, tags between marker tokens; parameters say their JSON type."""

from __future__ import annotations

from interlock.core.argument_syntax import JSON_TYPES, TaggedArguments
from interlock.families.base import (
    AnswerFormat,
    Arguments,
    Lit,
    Mark,
    ModelFamily,
    Name,
    Number,
    ReasoningFormat,
    ToolCallSyntax,
)
from interlock.families.templates.kimi_k3 import KIMI_K3_TEMPLATE

_XTML = TaggedArguments(
    key_open='<|open|>argument key="',
    type_open='" type="',
    key_close='"<|sep|>',
    value_close="<|close|>argument<|sep|>",
    types=tuple((kind, kind) for kind in JSON_TYPES),
    escapes_keys=True,
)

FAMILY = ModelFamily(
    name="kimi_k3",
    aliases=("kimi-k3",),
    title="Kimi K3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|open|>tools<|sep|>"),),
        call=(
            Mark('<|open|>call tool="'),
            Name(),
            Lit('" index="'),
            Number(first=1),
            Mark('"<|sep|>'),
            Arguments(_XTML),
            Mark("<|close|>call<|sep|>"),
        ),
        section_close=(Mark("<|close|>tools<|sep|>"),),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(
        open="<|open|>think<|sep|>",
        close="<|close|>think<|sep|>",
        after_open="",
        before_close="",
        after_close="",
        enabled_kwarg="thinking",
        effort_kwarg="thinking_effort",
        efforts=(("minimal", "low"), ("medium", "high"), ("xhigh", "max")),
        closed_by_tool_call=True,
    ),
    answer=AnswerFormat(
        open="<|open|>response<|sep|>",
        close="<|close|>response<|sep|>",
        leads_always=True,
        turn_close="<|close|>message<|sep|>",
        opened_by_prompt=True,
    ),
    template=KIMI_K3_TEMPLATE,
    stop_tokens=("<|end_of_msg|>",),
    architectures=("kimi_k3",),
    declares_in_messages=True,
)
