"""MiniMax M1: JSON objects, one a line, in ``<tool_calls>`` tags."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="minimax_m1",
    aliases=("minimax-m1",),
    title="MiniMax M1",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<tool_calls>"), Lit("\n")),
        call=(JsonEnvelope(),),
        section_close=(Lit("\n"), Mark("</tool_calls>")),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
)
