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

_NAME = Name(glued=("json",))
_JSON = (Header(" <|constrain|>json"), Mark("<|message|>"), Arguments())

FAMILY = ModelFamily(
    name="harmony",
    aliases=("gpt-oss", "gpt_oss", "openai"),
    title="gpt-oss",
    tool_calls=ToolCallSyntax(
        call=(Mark("<|channel|>commentary to=functions."), _NAME, *_JSON),
        variants=((Mark("<|channel|>analysis to=functions."), _NAME, *_JSON),),
        bare=" to=functions.",
        bare_call=(
            Lit(" to=functions."),
            _NAME,
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
        efforts=(("minimal", "low"), ("xhigh", "high"), ("max", "high")),
        repeats=True,
        resume="<|start|>assistant",
    ),
    answer=AnswerFormat(
        open="<|channel|>final<|message|>",
        lead_open="<|channel|>commentary<|message|>",
        lead_close="<|end|><|start|>assistant",
        header_open="<|channel|>",
        header_close="<|message|>",
        others=("<|end|>", "<|start|>assistant", "<|channel|>final", "<|return|>", "<|call|>"),
    ),
    template=HARMONY_TEMPLATE,
    stop_tokens=("<|call|>", "<|return|>"),
    architectures=("gpt-oss", "gpt_oss"),
)
