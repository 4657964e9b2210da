"""ToolACE: a list of Python calls, without markers."""

from __future__ import annotations

from interlock.core.argument_syntax import PythonArguments
from interlock.families.base import Arguments, Lit, ModelFamily, Name, ToolCallSyntax

FAMILY = ModelFamily(
    name="toolace",
    title="ToolACE, Watt Tool",
    tool_calls=ToolCallSyntax(
        section_open=(Lit("["),),
        call=(Name(), Lit("("), Arguments(PythonArguments()), Lit(")")),
        section_close=(Lit("]"),),
        separator=", ",
        lead="",
        bare="[",
    ),
)
