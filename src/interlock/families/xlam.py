"""xLAM: a bare JSON array."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="xlam",
    aliases=(),
    title="xLAM",
    tool_calls=ToolCallSyntax(
        section_open=(Lit("["),),
        call=(JsonEnvelope(name_first=True),),
        section_close=(Lit("]"),),
        separator=", ",
        lead="",
        bare="[",
    ),
)
