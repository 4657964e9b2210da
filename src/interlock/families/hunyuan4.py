"""Hunyuan 4: keys and values in tags of their own, which carry the checkpoint's suffix."""

from __future__ import annotations

from dataclasses import replace

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ToolCallSyntax
from interlock.families.hunyuan import HUNYUAN_REASONING

_PARAMETERS = TaggedArguments(
    key_open="<arg_key:opensource>",
    key_close="</arg_key:opensource>\n<arg_value:opensource>",
    value_close="</arg_value:opensource>\n",
)

FAMILY = ModelFamily(
    name="hy_v4",
    aliases=("hunyuan_v4",),
    title="Hunyuan 3, 4 with tagged checkpoints",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<tool_calls:opensource>"), Lit("\n")),
        call=(
            Mark("<tool_call:opensource>"),
            Name(),
            Lit("<tool_sep:opensource>\n"),
            Arguments(_PARAMETERS),
            Mark("</tool_call:opensource>"),
        ),
        section_close=(Lit("\n"), Mark("</tool_calls:opensource>")),
        separator="\n",
        lead="",
    ),
    reasoning=replace(HUNYUAN_REASONING, open="<think:opensource>", close="</think:opensource>"),
    reserved=("</arg_value:opensource>",),
)
