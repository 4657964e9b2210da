"""Cohere's tagged form: values say whether they are raw text or JSON."""

from __future__ import annotations

from interlock.core.argument_syntax import TaggedArguments, type_words
from interlock.families.base import (
    AnswerFormat,
    Arguments,
    Lit,
    Mark,
    ModelFamily,
    Name,
    Number,
    ReasoningFormat,
    ToolCallSyntax,
)

_VALUES = TaggedArguments(
    key_open='<cofl:value name="',
    type_open='" type="',
    key_close='">',
    value_close="</cofl:value>",
    types=type_words("raw", "json"),
    escapes_keys=True,
    nested=(("object", "dict"), ("array", "list")),
    item_open='<cofl:value type="',
)

FAMILY = ModelFamily(
    name="cohere_cofl",
    aliases=("cohere",),
    title="Cohere, tagged form",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<cofl:tool_calls>"),),
        call=(
            Mark('<cofl:tool_call id="'),
            Number(),
            Lit('" name="'),
            Name(),
            Lit('">'),
            Arguments(_VALUES),
            Mark("</cofl:tool_call>"),
        ),
        section_close=(Mark("</cofl:tool_calls>"),),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(
        open="<|START_THINKING|>",
        close="<|END_THINKING|>",
        after_open="",
        before_close="",
        after_close="",
        on_variables=(("reasoning", True),),
        off_variables=(("reasoning", False),),
    ),
    answer=AnswerFormat(
        open="<|START_TEXT|>", close="<|END_TEXT|>", others=("<|START_RESPONSE|>", "<|END_RESPONSE|>")
    ),
    stop_tokens=("<|END_OF_TURN_TOKEN|>",),
    reserved=("</cofl:value>",),
)
