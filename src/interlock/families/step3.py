"""Step 3: parameters as tags in DeepSeek's markers."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(
    key_open='<steptml:parameter name="', key_close='">', value_close="</steptml:parameter>"
)

FAMILY = ModelFamily(
    name="step3",
    aliases=(),
    title="Step 3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<｜tool_calls_begin｜>"),),
        call=(
            Mark("<｜tool_call_begin｜>"),
            Lit("function"),
            Mark("<｜tool_sep｜>"),
            Lit('<steptml:invoke name="'),
            Name(),
            Lit('">'),
            Arguments(_PARAMETERS),
            Lit("</steptml:invoke>"),
            Mark("<｜tool_call_end｜>"),
        ),
        section_close=(Mark("<｜tool_calls_end｜>"),),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    reserved=("</steptml:parameter>",),
)
