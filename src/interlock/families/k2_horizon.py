"""K2 Horizon: keys and values in tags of their own, in one block."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(
    key_open="<ifm|arg_key>",
    key_close="</ifm|arg_key>\n<ifm|arg_value>",
    value_close="</ifm|arg_value>\n",
)

FAMILY = ModelFamily(
    name="k2_horizon",
    aliases=("k2-horizon", "k2v3"),
    title="K2 Horizon",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<ifm|tool_calls>"), Lit("\n")),
        call=(
            Mark("<ifm|tool_call>"),
            Name(),
            Lit("\n"),
            Arguments(_PARAMETERS),
            Mark("</ifm|tool_call>"),
        ),
        section_close=(Lit("\n"), Mark("</ifm|tool_calls>")),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(open="<ifm|think>", close="</ifm|think>"),
    reserved=("</ifm|arg_value>",),
)
