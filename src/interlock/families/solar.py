"""Solar Open: ids, names and JSON between marker tokens."""

from __future__ import annotations

from interlock.families.base import Arguments, CallId, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax

FAMILY = ModelFamily(
    name="solar_open",
    aliases=("solar",),
    title="Solar Open",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<|tool_calls|>"),),
        call=(
            Mark("<|tool_call:begin|>"),
            CallId(size=10),
            Mark("<|tool_call:name|>"),
            Name(),
            Mark("<|tool_call:args|>"),
            Arguments(),
            Mark("<|tool_call:end|>"),
        ),
        separator="",
        lead="",
    ),
    reasoning=ReasoningFormat(
        efforts=(("none", "low"),),
        off_variables=(("reasoning_effort", "low"),),
        open="<|think|>",
        close="<|end|>",
        after_open="",
        before_close="",
        after_close="",
    ),
    stop_tokens=("<|calls|>",),
    architectures=("solar_open",),
)
