"""MiniMax M3: every key and every item is a tag behind a marker token."""

from __future__ import annotations

from interlock.core.argument_syntax import NestedTagArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_MARK = "]<]minimax[>["

FAMILY = ModelFamily(
    name="minimax_m3",
    aliases=("minimax-m3",),
    title="MiniMax M3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark(_MARK + "<tool_call>"), Lit("\n")),
        call=(
            Mark(_MARK + '<invoke name="'),
            Name(),
            Lit('">'),
            Arguments(NestedTagArguments(_MARK)),
            Mark(_MARK + "</invoke>"),
        ),
        section_close=(Lit("\n"), Mark(_MARK + "</tool_call>")),
        lead="",
    ),
    reasoning=ReasoningFormat(
        open="<mm:think>",
        close="</mm:think>",
        after_open="",
        before_close="",
        after_close="",
        on_variables=(("thinking_mode", "enabled"),),
        off_variables=(("thinking_mode", "disabled"),),
    ),
    reserved=(_MARK,),
    architectures=("minimax-m3", "minimax_m3"),
)
