"""Cohere Command R7B and A: a JSON array of actions between marker tokens."""

from __future__ import annotations

from interlock.families.base import (
    AnswerFormat,
    JsonEnvelope,
    Lit,
    Mark,
    ModelFamily,
    ReasoningFormat,
    ToolCallSyntax,
)

FAMILY = ModelFamily(
    name="cohere_command",
    aliases=("cohere_command4", "cohere_cmd", "command-r7b", "cohere2"),
    title="Cohere Command R7B, A",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|START_ACTION|>"), Lit("[\n    ")),
        call=(JsonEnvelope(name_key="tool_name", arguments_key="parameters", number_key="tool_call_id"),),
        section_close=(Lit("\n]"), Mark("<|END_ACTION|>")),
        separator=",\n    ",
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
        open="<|START_RESPONSE|>",
        close="<|END_RESPONSE|>",
        others=("<|START_TEXT|>", "<|END_TEXT|>"),
    ),
    stop_tokens=("<|END_OF_TURN_TOKEN|>",),
    architectures=("cohere2",),
)
