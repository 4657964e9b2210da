"""FunctionGemma: Gemma's bare keys with text markers."""

from __future__ import annotations

from interlock.core.argument_syntax import BareKeyArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ToolCallSyntax

FAMILY = ModelFamily(
    name="functiongemma",
    title="FunctionGemma",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<start_function_call>"),
            Lit("call:"),
            Name(),
            Arguments(BareKeyArguments("<escape>")),
            Mark("<end_function_call>"),
        ),
        separator="",
        lead="",
    ),
    stop_tokens=("<end_of_turn>", "<start_function_response>"),
    reserved=("<escape>",),
)
