"""Muse: a message to a tool that holds a block of tags."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(
    key_open='<atem:parameter name="', key_close='">', value_close="</atem:parameter>\n"
)

FAMILY = ModelFamily(
    name="muse",
    aliases=("musespark1x",),
    title="Muse",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<atem:function_calls>"), Lit("\n")),
        call=(
            Mark('<atem:invoke name="'),
            Name(),
            Lit('">\n'),
            Arguments(_PARAMETERS),
            Mark("</atem:invoke>"),
        ),
        section_close=(Lit("\n"), Mark("</atem:function_calls>")),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    stop_tokens=("<|eom|>", "<|eot|>"),
    reserved=("</atem:parameter>",),
)
