"""InternLM 2 and 3: JSON between marker tokens."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="internlm",
    aliases=("internlm2", "internlm3"),
    title="InternLM 2, 2.5, 3",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<|action_start|>"),
            Mark("<|plugin|>"),
            JsonEnvelope(arguments_key="parameters", argument_aliases=("arguments",)),
            Mark("<|action_end|>"),
        ),
        separator="",
        single=True,
    ),
    architectures=("internlm2", "internlm3"),
)
