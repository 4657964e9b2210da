"""Gemma 4: bare keys, strings between quote tokens, nested without limit."""

from __future__ import annotations

from interlock.core.argument_syntax import BareKeyArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="gemma4",
    aliases=("gemma_4", "gemma-4"),
    title="Gemma 4",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<|tool_call>"),
            Lit("call:"),
            Name(),
            Arguments(BareKeyArguments('<|"|>')),
            Mark("<tool_call|>"),
        ),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(open="<|channel>thought", close="<channel|>", after_close=""),
    stop_tokens=("<turn|>", "<|tool_response>"),
    reserved=('<|"|>',),
    architectures=("gemma4",),
)
