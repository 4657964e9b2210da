"""Apertus: a JSON array of objects whose key is the tool's name."""

from __future__ import annotations

from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="apertus",
    title="Apertus",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|tools_prefix|>"), Lit("[")),
        call=(Lit('{"'), Name(), Lit('": '), Arguments(), Lit("}")),
        section_close=(Lit("]"), Mark("<|tools_suffix|>")),
        separator=", ",
        lead="",
    ),
    reasoning=ReasoningFormat(
        open="<|inner_prefix|>", close="<|inner_suffix|>", after_open="", before_close="", after_close=""
    ),
    architectures=("apertus",),
)
