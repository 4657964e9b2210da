"""dots: parameters as tags, all calls in one block."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ToolCallSyntax

_PARAMETERS = TaggedArguments(key_open='<parameter name="', key_close='">', value_close="</parameter>")

FAMILY = ModelFamily(
    name="dots",
    title="dots",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<dots_function_call>"),),
        call=(Mark('<invoke name="'), Name(), Lit('">'), Arguments(_PARAMETERS), Mark("</invoke>")),
        section_close=(Mark("</dots_function_call>"),),
        separator="",
        lead="",
    ),
    reserved=("</parameter>",),
)
