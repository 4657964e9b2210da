"""Mistral v13: Magistral, Ministral, Devstral: name and JSON between marker tokens."""

from __future__ import annotations

from interlock.families.base import Arguments, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="mistral_v13",
    aliases=("mistral", "ministral", "devstral", "magistral"),
    title="Mistral v13: Magistral, Ministral, Devstral",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("[TOOL_CALLS]"),
            Name(),
            Mark("[ARGS]"),
            Arguments(),
        ),
        separator="",
        lead="",
        ids="mistral",
    ),
    reasoning=ReasoningFormat(open="[THINK]", close="[/THINK]", after_open="", before_close="", after_close=""),
)
