"""Mistral before v11: a JSON array after a marker token."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="mistral_v3",
    aliases=("mistral_old", "mistral-nemo", "mistral_nemo"),
    title="Mistral 7B v0.3, Nemo, Large 2407",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("[TOOL_CALLS]"), Lit("[")),
        call=(JsonEnvelope(id_key="id"),),
        section_close=(Lit("]"),),
        separator=", ",
        lead="",
        ids="mistral",
    ),
)
