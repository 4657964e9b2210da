"""Apriel: a JSON array in ``<tool_calls>`` tags."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="apriel",
    aliases=(),
    title="Apriel 1.5, 1.6",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<tool_calls>"), Lit("[")),
        call=(JsonEnvelope(id_key="id"),),
        section_close=(Lit("]"), Mark("</tool_calls>")),
        separator=", ",
        lead="\n",
    ),
)
