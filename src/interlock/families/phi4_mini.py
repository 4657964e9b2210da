"""Phi-4-mini: a JSON array after the word ``functools``."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="phi4_mini",
    aliases=("phi4_mini_json", "phi-4-mini"),
    title="Phi-4-mini",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("functools["),),
        call=(JsonEnvelope(),),
        section_close=(Lit("]"),),
        separator=", ",
        lead="",
    ),
)
