"""Kimi K2 and K2.5: JSON between marker tokens; the header is the call's id."""

from __future__ import annotations

from interlock.families.base import Arguments, Mark, ModelFamily, NumberedName, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="kimi_k2",
    aliases=("kimi", "kimi-k2", "kimi_k2_5"),
    title="Kimi K2, K2.5",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|tool_calls_section_begin|>"),),
        call=(
            Mark("<|tool_call_begin|>"),
            NumberedName("functions."),
            Mark("<|tool_call_argument_begin|>"),
            Arguments(),
            Mark("<|tool_call_end|>"),
        ),
        section_close=(Mark("<|tool_calls_section_end|>"),),
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
    architectures=("kimi_k2",),
)
