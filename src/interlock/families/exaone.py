"""EXAONE 4: compact JSON in ``<tool_call>`` tags."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Mark, ModelFamily, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="exaone",
    aliases=("exaone4",),
    title="EXAONE 4",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<tool_call>"),
            JsonEnvelope(),
            Mark("</tool_call>"),
        ),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    architectures=("exaone4", "exaone"),
)
