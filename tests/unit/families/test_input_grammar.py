"""Tools whose only argument is held to a grammar that nests."""

from __future__ import annotations

import pytest

from interlock.constraints.walk import walk
from interlock.core.constraint import Grammar
from interlock.core.output_format import TextFormat
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families import registry
from interlock.families.wire.constrain import constrain

NESTED = 'start: "(" start ")" | "x"'
TOOL = Tool(
    name="f",
    parameters='{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}',
    input_grammar=NESTED,
)


def grammars(family: str, *, constrained: bool = True) -> list[Grammar]:
    context = ToolContext(
        effective_tools=(TOOL,),
        callable_tools=(TOOL,),
        tool_choice=ToolChoice(mode="required"),
        constrained=constrained,
    )
    spec = constrain(registry.by_name(family), tools=context, output_format=TextFormat(), thinking="none")
    return [node for node in walk(spec.root) if isinstance(node, Grammar)] if spec else []


def test_where_arguments_are_json_the_grammar_stands_between_the_quotes() -> None:
    assert set(grammars("qwen3")) == {Grammar(NESTED, "lark", "tools[0].function.parameters", quoted=True)}


def test_where_calls_are_free_it_is_not_there() -> None:
    assert grammars("qwen3", constrained=False) == []


@pytest.mark.parametrize("family", ["qwen3_coder", "gemma4"])
def test_where_strings_are_raw_it_is_refused(family: str) -> None:
    with pytest.raises(InterlockError) as caught:
        grammars(family)
    assert caught.value.code == "invalid_grammar"
    assert caught.value.problems[0].tool == "f"
