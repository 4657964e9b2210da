"""MiMo: parameters as compact tags."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(key_open="<parameter=", key_close=">", value_close="</parameter>")

FAMILY = ModelFamily(
    name="mimo",
    aliases=("mimo_v2",),
    title="MiMo",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<tool_call>"),
            Lit("<function="),
            Name(),
            Lit(">"),
            Arguments(_PARAMETERS),
            Lit("</function>"),
            Mark("</tool_call>"),
        ),
        separator="",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>", after_open="", before_close="", after_close=""),
    reserved=("</parameter>",),
    architectures=("mimo2", "mimo_v2"),
)
