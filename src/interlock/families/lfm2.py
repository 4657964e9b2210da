"""LFM 2.5: calls as a list of Python calls between marker tokens."""

from __future__ import annotations

from interlock.core.argument_syntax import PythonArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="lfm2",
    aliases=("lfm2.5", "lfm"),
    title="LFM 2, 2.5",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|tool_call_start|>"), Lit("[")),
        call=(Name(), Lit("("), Arguments(PythonArguments(quote="'")), Lit(")")),
        section_close=(Lit("]"), Mark("<|tool_call_end|>")),
        separator=", ",
        lead="",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    architectures=("lfm2", "lfm2moe", "lfm2_moe"),
)
