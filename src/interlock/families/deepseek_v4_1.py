"""DeepSeek V4.1: DSML, tags around a sentinel token; a word says whether a parameter is text or JSON."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax
from interlock.families.templates.dsml import dsml_template

_DSML = TaggedArguments(
    key_open='<｜DSML｜ parameter name="',
    type_open='" string="',
    key_close='">',
    value_close="</｜DSML｜ parameter>",
    separator="\n",
    types=(
        ("string", "true"),
        ("number", "false"),
        ("boolean", "false"),
        ("null", "false"),
        ("object", "false"),
        ("array", "false"),
    ),
)

FAMILY = ModelFamily(
    name="deepseek_v4_1",
    aliases=("deepseek_v41", "deepseek-v4.1"),
    title="DeepSeek V4.1",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<｜DSML｜ calls>"), Lit("\n")),
        call=(
            Mark('<｜DSML｜ invoke name="'),
            Name(),
            Lit('">\n'),
            Arguments(_DSML),
            Lit("\n"),
            Mark("</｜DSML｜ invoke>"),
        ),
        section_close=(Lit("\n"), Mark("</｜DSML｜ calls>")),
        lead="\n\n",
        always_leads=True,
    ),
    reasoning=ReasoningFormat(
        open="<think>",
        close="</think>",
        after_open="",
        before_close="",
        after_close="",
        enabled_kwarg="thinking",
        closed_by_tool_call=True,
    ),
    template=dsml_template("｜DSML｜ ", "calls"),
    reserved=("</｜DSML｜ parameter>", "</tool_result>"),
    architectures=("deepseek_v41",),
)
