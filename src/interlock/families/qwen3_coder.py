"""Qwen3-Coder, Qwen 3.5 and others: parameters as tags, each value on lines of its own."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

_PARAMETERS = TaggedArguments(key_open="<parameter=", key_close=">\n", value_close="\n</parameter>\n")

FAMILY = ModelFamily(
    name="qwen3_coder",
    aliases=("qwen_3_coder", "qwen_3_5", "qwen3_5", "qwen3_xml", "qwen3.5", "nemotron_v3", "step3p5"),
    title="Qwen3-Coder, Qwen 3.5, 3.6, Nemotron 3, Step 3.5",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<tool_call>"),
            Lit("\n<function="),
            Name(),
            Lit(">\n"),
            Arguments(_PARAMETERS),
            Lit("</function>\n"),
            Mark("</tool_call>"),
        ),
        variants=((Mark("<function="), Name(), Lit(">\n"), Arguments(_PARAMETERS), Mark("</function>")),),
        separator="\n",
        lead="\n\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>"),
    reserved=("</parameter>",),
    architectures=("qwen35", "qwen3_5", "qwen3next", "qwen3_next"),
)
