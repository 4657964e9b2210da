"""What DeepSeek's families with DSML share: tags around a sentinel token; a word says whether a parameter is text or
JSON."""

from __future__ import annotations

from dataclasses import replace

from interlock.core.argument_syntax import TaggedArguments, type_words
from interlock.families.base import Arguments, Lit, Mark, Name, ReasoningFormat, ToolCallSyntax

DSML_REASONING = ReasoningFormat(
    open="<think>",
    close="</think>",
    after_open="",
    before_close="",
    after_close="",
    enabled_kwarg="thinking",
    closed_by_tool_call=True,
)
DSML_REASONING_WITH_EFFORT = replace(DSML_REASONING, efforts=(("xhigh", "max"),))


def dsml_calls(prefix: str, section: str, *, ends_lines: bool = False) -> ToolCallSyntax:
    """prefix: what begins the name of every tag. section: name of the tag around all calls. ends_lines: a parameter ends
    with a line break of its own, so that a call without any has none."""
    parameters = TaggedArguments(
        key_open=f'<{prefix}parameter name="',
        type_open='" string="',
        key_close='">',
        value_close=f"{dsml_closer(prefix)}\n" if ends_lines else dsml_closer(prefix),
        separator="" if ends_lines else "\n",
        types=type_words("true", "false"),
    )
    return ToolCallSyntax(
        section_open=(Mark(f"<{prefix}{section}>"), Lit("\n")),
        call=(
            Mark(f'<{prefix}invoke name="'),
            Name(),
            Lit('">\n'),
            Arguments(parameters),
            *(() if ends_lines else (Lit("\n"),)),
            Mark(f"</{prefix}invoke>"),
        ),
        section_close=(Lit("\n"), Mark(f"</{prefix}{section}>")),
        lead="\n\n",
        always_leads=True,
    )


def dsml_closer(prefix: str) -> str:
    """What ends a parameter."""
    return f"</{prefix}parameter>"
