"""Llama 4: calls as a list of Python calls."""

from __future__ import annotations

from interlock.core.argument_syntax import PythonArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ToolCallSyntax

FAMILY = ModelFamily(
    name="llama4",
    aliases=("llama4_pythonic", "pythonic"),
    title="Llama 4",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|python_start|>"), Lit("[")),
        call=(Name(), Lit("("), Arguments(PythonArguments()), Lit(")")),
        section_close=(Lit("]"), Mark("<|python_end|>")),
        separator=", ",
        lead="",
        bare="[",
    ),
    stop_tokens=("<|eom|>", "<|eot|>"),
    architectures=("llama4",),
)
