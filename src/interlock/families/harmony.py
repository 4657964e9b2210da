"""gpt-oss: messages on channels; a call is a message to a function."""

from __future__ import annotations

from interlock.families.base import (
    AnswerFormat,
    Arguments,
    Header,
    Lit,
    Mark,
    ModelFamily,
    Name,
    ReasoningFormat,
    ToolCallSyntax,
)
from interlock.families.templates.harmony import HARMONY_TEMPLATE

FAMILY = ModelFamily(
    name="harmony",
    aliases=("gpt-oss", "gpt_oss", "openai"),
    title="gpt-oss",
    tool_calls=ToolCallSyntax(
        call=(
            Mark("<|channel|>commentary to=functions."),
            Name(),
            Header(" <|constrain|>json"),
            Mark("<|message|>"),
            Arguments(),
        ),
        bare=" to=functions.",
        bare_call=(
            Lit(" to=functions."),
            Name(),
            Header("<|channel|>commentary json"),
            Mark("<|message|>"),
            Arguments(),
        ),
        separator="",
        lead="",
        single=True,
    ),
    reasoning=ReasoningFormat(
        open="<|channel|>analysis<|message|>",
        close="<|end|>",
        after_open="",
        before_close="",
        after_close="",
        history_key="thinking",
        repeats=True,
        resume="<|start|>assistant",
    ),
    answer=AnswerFormat(
        open="<|channel|>final<|message|>",
        lead_open="<|channel|>commentary<|message|>",
        lead_close="<|end|><|start|>assistant",
        others=("<|end|>", "<|start|>assistant", "<|channel|>final", "<|return|>", "<|call|>"),
    ),
    template=HARMONY_TEMPLATE,
    stop_tokens=("<|call|>", "<|return|>"),
    architectures=("gpt-oss", "gpt_oss"),
)
