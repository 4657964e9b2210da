"""Jamba: a JSON array, one call a line, in ``<tool_calls>`` tags."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="jamba",
    aliases=(),
    title="Jamba 1.5 and later",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<tool_calls>"), Lit("[\n  ")),
        call=(JsonEnvelope(),),
        section_close=(Lit("\n]"), Mark("</tool_calls>")),
        separator=",\n  ",
        lead="\n",
    ),
    architectures=("jamba",),
)
