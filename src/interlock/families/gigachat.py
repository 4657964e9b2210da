"""GigaChat 3.1: JSON after a marker token."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="gigachat3_1",
    aliases=("gigachat3",),
    title="GigaChat 3.1",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<|function_call|>"),
            JsonEnvelope(),
        ),
        separator="",
        lead="",
    ),
    stop_tokens=("<|message_sep|>",),
)
