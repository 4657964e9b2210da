"""GLM 4.5 and 4.6: keys and values in tags of their own, one a line."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(
    key_open="<arg_key>", key_close="</arg_key>\n<arg_value>", value_close="</arg_value>\n"
)

FAMILY = ModelFamily(
    name="glm_4_5",
    aliases=("glm45", "glm-4.5", "glm_4_6"),
    title="GLM 4.5, 4.6",
    tool_calls=ToolCallSyntax(
        call=(Mark("<tool_call>"), Name(), Lit("\n"), Arguments(_PARAMETERS), Mark("</tool_call>")),
        separator="\n",
        lead="\n",
    ),
    reasoning=ReasoningFormat(
        open="<think>", close="</think>", after_open="", before_close="", after_close="\n"
    ),
    stop_tokens=("<|observation|>", "<|user|>"),
    reserved=("</arg_value>",),
    architectures=("glm4moe", "glm4_moe"),
)
