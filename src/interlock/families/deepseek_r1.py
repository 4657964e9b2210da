"""DeepSeek V3 and R1: JSON in a code fence between marker tokens."""

from __future__ import annotations

from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="deepseek_r1",
    aliases=("deepseek_v3", "deepseek-r1", "deepseek-v3"),
    title="DeepSeek V3, R1",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<｜tool▁calls▁begin｜>"),),
        call=(
            Mark("<｜tool▁call▁begin｜>"),
            Lit("function"),
            Mark("<｜tool▁sep｜>"),
            Name(),
            Lit("\n```json\n"),
            Arguments(),
            Lit("\n```"),
            Mark("<｜tool▁call▁end｜>"),
        ),
        section_close=(Mark("<｜tool▁calls▁end｜>"),),
        separator="\n",
        lead="",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>", closed_by_tool_call=True),
    architectures=("deepseek_v3",),
)
