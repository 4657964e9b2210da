"""Functionary 3.1: JSON in a tag that carries the tool's name."""

from __future__ import annotations

from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ToolCallSyntax

FAMILY = ModelFamily(
    name="functionary_v3_1",
    aliases=("functionary",),
    title="Functionary 3.1",
    tool_calls=ToolCallSyntax(
        call=(Mark("<function="), Name(), Lit(">"), Arguments(), Mark("</function>")),
        separator="",
        lead="",
    ),
    stop_tokens=("<|eom_id|>", "<|eot_id|>"),
)
