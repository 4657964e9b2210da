"""Muse: messages with recipients; one to a tool holds a block of tags."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import (
    AnswerFormat,
    Arguments,
    Lit,
    Mark,
    ModelFamily,
    Name,
    ReasoningFormat,
    Recipient,
    ToolCallSyntax,
)

_PARAMETERS = TaggedArguments(
    key_open='<atem:parameter name="', key_close='">', value_close="</atem:parameter>\n"
)
_NEXT = "<|eom|><|start|>assistant"

FAMILY = ModelFamily(
    name="muse",
    aliases=("musespark1x",),
    title="Muse",
    tool_calls=ToolCallSyntax(
        call=(
            Recipient(before=" to=", after="<|message|>"),
            Mark("<atem:function_calls>"),
            Lit("\n"),
            Mark('<atem:invoke name="'),
            Name(),
            Lit('">\n'),
            Arguments(_PARAMETERS),
            Mark("</atem:invoke>"),
            Lit("\n"),
            Mark("</atem:function_calls>"),
        ),
        separator=_NEXT,
        lead="",
    ),
    reasoning=ReasoningFormat(
        open=" to=self<|message|>",
        close="<|eom|>",
        after_open="",
        before_close="",
        after_close="",
        effort_kwarg="reasoning_strength",
        resume="<|start|>assistant",
    ),
    answer=AnswerFormat(
        open=" to=user<|message|>",
        lead_open=" to=user<|message|>",
        lead_close=_NEXT,
        header_open=" to=",
        header_close="<|message|>",
        others=("<|start|>assistant", "<|eom|>"),
    ),
    stop_tokens=("<|eot|>",),
    reserved=("</atem:parameter>",),
)
