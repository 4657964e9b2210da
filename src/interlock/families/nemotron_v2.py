"""Nemotron Nano 2: a JSON array in ``<TOOLCALL>`` tags."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="nemotron_v2",
    aliases=("nemotron_nano_v2",),
    title="Nemotron Nano 2",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<TOOLCALL>"), Lit("[")),
        call=(JsonEnvelope(),),
        section_close=(Lit("]"), Mark("</TOOLCALL>")),
        separator=", ",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
)
