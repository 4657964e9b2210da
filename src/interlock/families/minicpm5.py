"""MiniCPM 5: parameters as compact tags, the tool's name in the call's tag."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(key_open='<param name="', key_close='">', value_close="</param>")

FAMILY = ModelFamily(
    name="minicpm5",
    aliases=("minicpm",),
    title="MiniCPM 5",
    tool_calls=ToolCallSyntax(
        call=(Mark('<function name="'), Name(), Lit('">'), Arguments(_PARAMETERS), Mark("</function>")),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    reserved=("</param>",),
)
