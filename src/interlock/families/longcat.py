"""LongCat: JSON in tags of its own."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="longcat",
    aliases=("longcat_flash",),
    title="LongCat Flash",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<longcat_tool_call>"),
            Lit("\n"),
            JsonEnvelope(),
            Lit("\n"),
            Mark("</longcat_tool_call>"),
        ),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<longcat_think>", close="</longcat_think>"),
    architectures=("longcat_flash", "longcat-flash"),
)
