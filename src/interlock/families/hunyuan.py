"""Hunyuan 3: keys and values in tags of their own, in one block."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(
    key_open="<arg_key>", key_close="</arg_key>\n<arg_value>", value_close="</arg_value>\n"
)

HUNYUAN_REASONING = ReasoningFormat(
    open="<think>",
    close="</think>",
    after_open="",
    before_close="",
    after_close="",
    efforts=(("none", "no_think"), ("minimal", "low"), ("medium", "high"), ("xhigh", "high"), ("max", "high")),
    on_variables=(("reasoning_effort", "high"),),
    off_variables=(("reasoning_effort", "no_think"),),
)

FAMILY = ModelFamily(
    name="hy_v3",
    aliases=("hunyuan_v3",),
    title="Hunyuan 3",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<tool_calls>"), Lit("\n")),
        call=(
            Mark("<tool_call>"),
            Name(),
            Lit("<tool_sep>\n"),
            Arguments(_PARAMETERS),
            Mark("</tool_call>"),
        ),
        section_close=(Lit("\n"), Mark("</tool_calls>")),
        separator="\n",
        lead="",
    ),
    reasoning=HUNYUAN_REASONING,
    reserved=("</arg_value>",),
)
