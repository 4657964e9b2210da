"""DeepSeek V3.1: a bare name and JSON between marker tokens."""

from __future__ import annotations

from interlock.families.base import Arguments, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="deepseek_v3_1",
    aliases=("deepseek_v31", "deepseek-v3.1"),
    title="DeepSeek V3.1",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<｜tool▁calls▁begin｜>"),),
        call=(
            Mark("<｜tool▁call▁begin｜>"),
            Name(),
            Mark("<｜tool▁sep｜>"),
            Arguments(),
            Mark("<｜tool▁call▁end｜>"),
        ),
        section_close=(Mark("<｜tool▁calls▁end｜>"),),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(
        open="<think>",
        close="</think>",
        after_open="",
        before_close="",
        after_close="",
        enabled_kwarg="thinking",
        closed_by_tool_call=True,
    ),
)
