"""Seed-OSS: parameters as tags, markers of its own."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(key_open="<parameter=", key_close=">", value_close="</parameter>\n")

FAMILY = ModelFamily(
    name="seed_oss",
    aliases=("seed-oss",),
    title="Seed-OSS",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<seed:tool_call>"),
            Lit("\n<function="),
            Name(),
            Lit(">\n"),
            Arguments(_PARAMETERS),
            Lit("</function>\n"),
            Mark("</seed:tool_call>"),
        ),
        separator="\n",
        lead="\n\n",
    ),
    reasoning=ReasoningFormat(
        budget_kwarg="thinking_budget",
        off_variables=(("thinking_budget", 0),),
        open="<seed:think>",
        close="</seed:think>",
        after_open="",
        before_close="",
        after_close="\n",
    ),
    stop_tokens=("<seed:eos>",),
    reserved=("</parameter>",),
    architectures=("seed_oss",),
)
