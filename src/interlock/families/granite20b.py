"""Granite 20B function calling: JSON after a text marker."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="granite_20b_fc",
    aliases=("granite-20b-fc",),
    title="Granite 20B function calling",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<function_call>"),
            Lit(" "),
            JsonEnvelope(),
            Lit(" "),
        ),
        separator="\n",
        lead="",
    ),
)
