"""GLM 4.7 and 5: keys and values in tags of their own, without white space."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(
    key_open="<arg_key>", key_close="</arg_key><arg_value>", value_close="</arg_value>"
)

FAMILY = ModelFamily(
    name="glm_4_7",
    aliases=("glm47", "glm-4.7", "glm_5"),
    title="GLM 4.7, 5",
    tool_calls=ToolCallSyntax(
        call=(Mark("<tool_call>"), Name(), Arguments(_PARAMETERS), Mark("</tool_call>")),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>", after_open="", before_close="", after_close=""),
    stop_tokens=("<|observation|>", "<|user|>"),
    reserved=("</arg_value>",),
)
