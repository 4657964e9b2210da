"""Granite 4: JSON in ``<tool_call>`` tags, no thinking."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="granite4",
    aliases=("granite-4",),
    title="Granite 4",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<tool_call>"),
            Lit("\n"),
            JsonEnvelope(),
            Lit("\n"),
            Mark("</tool_call>"),
        ),
        separator="\n",
        lead="\n",
    ),
    architectures=("granite", "granitehybrid", "granitemoehybrid"),
)
