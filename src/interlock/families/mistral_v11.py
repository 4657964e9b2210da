"""Mistral Small 3.2 (v11): name and JSON between marker tokens."""

from __future__ import annotations

from interlock.families.base import Arguments, CallId, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="mistral_v11",
    aliases=("mistral_small_3_2",),
    title="Mistral Small 3.2 (v11)",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("[TOOL_CALLS]"),
            Name(),
            Mark("[CALL_ID]"),
            CallId(size=9),
            Mark("[ARGS]"),
            Arguments(),
        ),
        separator="",
        lead="",
        ids="mistral",
    ),
    reasoning=ReasoningFormat(open="[THINK]", close="[/THINK]", after_open="", before_close="", after_close=""),
)
