"""Qwen 2.5, Qwen 3, QwQ and Hermes: JSON in ``<tool_call>`` tags, thinking in ``<think>`` tags."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Lit, Mark, ModelFamily, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="qwen3",
    aliases=("qwen", "qwen2.5", "qwen2_5", "qwen_3", "qwen3_json", "qwq", "hermes"),
    title="Qwen 2.5, Qwen 3, Hermes",
    tool_calls=ToolCallSyntax(
        call=(Mark("<tool_call>"), Lit("\n"), JsonEnvelope(), Lit("\n"), Mark("</tool_call>")),
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
)
