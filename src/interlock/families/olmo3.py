"""Olmo 3: Python calls, one a line, in ``<function_calls>`` tags."""

from __future__ import annotations

from interlock.core.argument_syntax import PythonArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="olmo3",
    title="Olmo 3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<function_calls>"),),
        call=(Name(), Lit("("), Arguments(PythonArguments()), Lit(")")),
        section_close=(Mark("</function_calls>"),),
        separator="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    architectures=("olmo3",),
)
