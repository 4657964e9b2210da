"""LM Studio's default format: JSON between text markers."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="lmstudio",
    aliases=("lm_studio", "default_tools"),
    title="LM Studio's default for models without tool training",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("[TOOL_REQUEST]"),
            JsonEnvelope(),
            Mark("[END_TOOL_REQUEST]"),
        ),
        separator="\n",
        lead="\n",
    ),
)
