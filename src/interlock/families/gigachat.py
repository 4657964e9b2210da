"""GigaChat 3 and 3.1: JSON after a marker token, in 3 behind the header of a message of its own."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="gigachat3_1",
    aliases=("gigachat3",),
    title="GigaChat 3, 3.1",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<|function_call|>"),
            JsonEnvelope(),
        ),
        variants=((Mark("function call<|role_sep|>"), Lit("\n"), JsonEnvelope()),),
        separator="",
        lead="",
    ),
    stop_tokens=("<|message_sep|>",),
)
