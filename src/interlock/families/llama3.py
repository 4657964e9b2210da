"""Llama 3.1 to 3.3: bare JSON, its arguments under ``parameters``."""

from __future__ import annotations

from interlock.families.base import JsonEnvelope, Mark, ModelFamily, ToolCallSyntax

FAMILY = ModelFamily(
    name="llama3",
    aliases=("llama", "llama3_json", "llama3.1", "llama4_json"),
    title="Llama 3.1, 3.2, 3.3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|python_tag|>"),),
        call=(JsonEnvelope(arguments_key="parameters", argument_aliases=("arguments",), name_first=True),),
        separator="; ",
        lead="",
        bare="{",
        writes_marks=False,
    ),
    stop_tokens=("<|eom_id|>", "<|eot_id|>"),
)
