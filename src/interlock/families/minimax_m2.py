"""MiniMax M2: several calls in one block, parameters as tags."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(key_open='<parameter name="', key_close='">', value_close="</parameter>\n")

FAMILY = ModelFamily(
    name="minimax_m2",
    aliases=("minimax", "minimax-m2"),
    title="MiniMax M2",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<minimax:tool_call>"), Lit("\n")),
        call=(
            Mark('<invoke name="'),
            Name(),
            Lit('">\n'),
            Arguments(_PARAMETERS),
            Mark("</invoke>"),
        ),
        section_close=(Lit("\n"), Mark("</minimax:tool_call>")),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    reserved=("</parameter>",),
    architectures=("minimax-m2", "minimax_m2"),
)
