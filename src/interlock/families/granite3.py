"""Granite 3: a JSON array after a marker token."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="granite3",
    aliases=("granite",),
    title="Granite 3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|tool_call|>"), Lit("[")),
        call=(JsonEnvelope(),),
        section_close=(Lit("]"),),
        separator=", ",
        lead="",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>", enabled_kwarg="thinking"),
)
