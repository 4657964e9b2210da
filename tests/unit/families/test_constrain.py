from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interlock.core.constraint import (
    Alternative,
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    Marker,
    Node,
    Regex,
    Repeat,
    Sequence,
    Text,
)
from interlock.core.output_format import (
    ChoiceFormat,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    RegexFormat,
    TextFormat,
)
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families.base import Arguments, Lit, Mark, ModelFamily, Name, ReasoningFormat, ToolCallSyntax
from interlock.families.qwen3 import FAMILY as QWEN3
from interlock.families.registry import FAMILIES, by_name
from interlock.families.wire.constrain import ConstrainPolicy, constrain

F = Tool(name="f", parameters='{"type":"object","properties":{"a":{"type":"integer"}}}')
G = Tool(name='g"h')
SCHEMA = JsonSchemaFormat(schema='{"type":"string"}')


def context(
    *tools: Tool, mode: Any = "required", parallel: bool = True, constrained: bool = True, **rest: Any
) -> ToolContext:
    return ToolContext(
        effective_tools=tools,
        callable_tools=rest.get("callable_tools", tools),
        tool_choice=ToolChoice(mode=mode),
        parallel_tool_calls=parallel,
        constrained=constrained,
    )


def root(tools: ToolContext, output_format: Any = TextFormat(), thinking: Any = "none", **rest: Any) -> Node:  # noqa: B008
    spec = constrain(
        rest.pop("family", QWEN3), tools=tools, output_format=output_format, thinking=thinking, **rest
    )
    assert spec is not None
    assert ConstraintSpec.from_json(spec.to_json()) == spec
    return spec.root


def call(tool: Tool, origin: str = "tools[0].function.parameters", **changes: Any) -> Sequence:
    head = '\n{"name": "' + tool.name.replace('"', '\\"') + '", "arguments": '
    value = JsonValue(schema=tool.parameters, property_order="any", origin=origin, tool=tool.name)
    return Sequence(
        (Marker("<tool_call>"), Text(head), replace(value, **changes), Text("}\n"), Marker("</tool_call>"))
    )


ONE = call(F)
MANY = Repeat(ONE, 1, None, Text("\n"))
TALK = FreeText(("<tool_call>",))
THOUGHTS = FreeText(("<think>", "</think>", "<tool_call>"))
LOOSE = Repeat(Choice(("\n", "\n\n")), 0, 1)
ANSWER = JsonValue(schema='{"type":"string"}', origin="response_format.json_schema.schema")


@pytest.mark.parametrize(
    "tools",
    [
        ToolContext(),
        context(F, mode="auto", constrained=False),
        context(F, mode="none", callable_tools=()),
        context(F, mode="none"),
    ],
)
def test_a_turn_that_nothing_binds_is_free(tools: ToolContext) -> None:
    for thinking in ("none", "open", "closed", "optional"):
        assert constrain(QWEN3, tools=tools, output_format=TextFormat(), thinking=thinking) is None


def test_required_calls() -> None:
    assert root(context(F)) == MANY
    assert root(context(F, parallel=False)) == ONE
    assert root(context(F, mode="named")) == MANY
    two = Alternative((ONE, call(G, "tools[1].function.parameters")))
    assert root(context(F, G)) == Repeat(two, 1, None, Text("\n"))


def test_the_origin_counts_in_the_declared_tools() -> None:
    node = root(context(F, G, callable_tools=(G,), parallel=False))
    assert node == call(G, "tools[1].function.parameters")


def test_auto_is_text_that_may_end_in_calls() -> None:
    assert root(context(F, mode="auto")) == Alternative((TALK, Sequence((TALK, MANY))))
    one = root(context(F, mode="auto", parallel=False))
    assert one == Alternative((TALK, Sequence((TALK, *ONE.items))))


@pytest.mark.parametrize(
    ("output_format", "node"),
    [
        (SCHEMA, ANSWER),
        (JsonObjectFormat(), JsonValue(schema='{"type":"object"}', origin="response_format")),
        (RegexFormat(pattern="a+"), Regex("a+", origin="structured_outputs.regex")),
        (ChoiceFormat(choices=("a", "b")), Choice(("a", "b"), origin="structured_outputs.choice")),
        (
            GrammarFormat(source="start: /a/", dialect="lark"),
            Grammar("start: /a/", "lark", origin="structured_outputs.grammar"),
        ),
    ],
)
def test_an_answer_format(output_format: Any, node: Node) -> None:
    for tools in (ToolContext(), context(F, mode="none")):
        assert root(tools, output_format) == node
    assert root(context(F, mode="auto"), output_format) == Alternative((MANY, node))
    assert root(context(F), output_format) == MANY
    behind_thinking = root(ToolContext(), output_format, "open")
    assert isinstance(behind_thinking, Sequence)
    thought, close, *_, answer = behind_thinking.items
    assert (thought, close, answer) == (THOUGHTS, Marker("</think>"), node)


def test_calls_beside_an_answer_format_are_exact_only_where_tools_are_constrained() -> None:
    node = root(context(F, mode="auto", parallel=False, constrained=False), SCHEMA)
    assert node == Alternative((call(F, schema='{"type":"object"}'), ANSWER))


def test_thinking_comes_first_and_cannot_open_a_call() -> None:
    block = (THOUGHTS, Marker("</think>"), LOOSE)
    assert root(context(F, parallel=False), thinking="closed") == ONE
    assert root(context(F, parallel=False), thinking="open") == Sequence((*block, *ONE.items))
    assert root(context(F, parallel=False), thinking="optional") == Alternative(
        (Sequence((Marker("<think>"), *block, *ONE.items)), ONE)
    )
    assert root(ToolContext(), SCHEMA, "open") == Sequence((*block, ANSWER))


def test_free_text_after_thinking_takes_the_white_space_and_cannot_think_again() -> None:
    talk = FreeText(("<tool_call>", "<think>", "</think>"))
    block = (THOUGHTS, Marker("</think>"))
    assert root(context(F, mode="auto"), thinking="open") == Alternative(
        (Sequence((*block, talk)), Sequence((*block, talk, MANY)))
    )


def test_white_space_after_thinking_is_exact_where_the_answer_may_begin_with_some() -> None:
    node = root(ToolContext(), ChoiceFormat(choices=("\na",)), "open")
    answer = Choice(("\na",), origin="structured_outputs.choice")
    assert node == Sequence((THOUGHTS, Marker("</think>"), Text("\n\n"), answer))


def test_the_policy_reaches_every_json_value() -> None:
    policy = ConstrainPolicy(
        open_objects=True, response_order="any", tool_order="declared", flexible_whitespace=True
    )
    node = root(context(F, mode="auto", parallel=False), SCHEMA, policy=policy)
    changes: dict[str, Any] = {"open_objects": True, "flexible_whitespace": True}
    assert node == Alternative(
        (
            call(F, property_order="declared", **changes),
            replace(ANSWER, property_order="any", **changes),
        )
    )


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        ("{}", '{"type": "object"}'),
        ("true", '{"type":"object"}'),
        ('{"properties":{"n":{"const":1e400}}}', '{"properties": {"n": {"const": 1e400}}, "type": "object"}'),
        ('{"type":["object","null"]}', '{"type": "object"}'),
    ],
)
def test_arguments_are_an_object_whatever_the_schema_leaves_open(parameters: str, schema: str) -> None:
    tool = Tool(name="f", parameters=parameters)
    assert root(context(tool, parallel=False)) == call(tool, schema=schema)


@pytest.mark.parametrize("parameters", ["false", '{"type":"string"}', '{"type":["null"]}', "[]"])
def test_parameters_that_are_no_object_are_refused_by_name(parameters: str) -> None:
    with pytest.raises(InterlockError, match="'f'") as caught:
        root(context(Tool(name="f", parameters=parameters)))
    assert caught.value.code == "invalid_tools"
    assert caught.value.problems[0].tool == "f"


def test_sections_and_bare_names() -> None:
    family = ModelFamily(
        name="sectioned",
        tool_calls=ToolCallSyntax(
            section_open=(Mark("<calls>"),),
            call=(Mark("<call>"), Name(), Mark("<sep>"), Arguments(), Mark("</call>")),
            section_close=(Lit("\n"), Mark("</calls>")),
            separator="",
        ),
        reasoning=ReasoningFormat(open="<think>", close="</think>", closed_by_tool_call=True),
    )
    value = JsonValue(
        schema=F.parameters, property_order="any", origin="tools[0].function.parameters", tool="f"
    )
    one = Sequence((Marker("<call>"), Text("f"), Marker("<sep>"), value, Marker("</call>")))
    calls = (Marker("<calls>"), Repeat(one, 1, None), Text("\n"), Marker("</calls>"))
    thoughts = FreeText(("<think>", "</think>", "<calls>", "<call>"))
    assert root(context(F), family=family) == Sequence(calls)
    assert root(context(F), thinking="open", family=family) == Alternative(
        (
            Sequence((thoughts, Marker("</think>"), LOOSE, *calls)),
            Sequence((thoughts, *calls)),
        )
    )


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_constraint_of_every_family_is_data(family: ModelFamily) -> None:
    for mode in ("required", "auto"):
        root(
            context(F, Tool(name="f-2"), mode=mode),
            thinking="optional" if family.reasoning else "none",
            family=family,
        )


def test_answer_markers_frame_the_answer_and_calls_stand_outside() -> None:
    resp, done = Marker("<|open|>response<|sep|>"), Marker("<|close|>response<|sep|>")
    end = Marker("<|close|>message<|sep|>")
    node = root(ToolContext(), SCHEMA, "closed", family=by_name("kimi_k3"))
    assert node == Sequence((ANSWER, done, end))  # the prompt has opened the answer
    node = root(ToolContext(), SCHEMA, "none", family=by_name("kimi_k3"))
    assert node == Sequence((resp, ANSWER, done, end))
    node = root(ToolContext(), SCHEMA, "optional", family=by_name("harmony"))
    final = Marker("<|channel|>final<|message|>")
    calls = by_name("harmony").tool_calls.openers
    assert len(calls) == 2
    thoughts = FreeText(("<|channel|>analysis<|message|>", "<|end|>", *calls))
    opened = (
        Marker("<|channel|>analysis<|message|>"),
        thoughts,
        Marker("<|end|>"),
        Marker("<|start|>assistant"),
    )
    assert node == Alternative((Sequence((*opened, final, ANSWER)), Sequence((final, ANSWER))))


def test_calls_without_a_marker_are_kept_apart_from_text() -> None:
    node = root(context(F, mode="auto", parallel=False), family=by_name("llama3"))
    assert isinstance(node, Alternative)
    assert node.items[0] == FreeText(("<|python_tag|>",), begins_not="{")


def test_a_name_that_cannot_stand_bare_is_refused() -> None:
    with pytest.raises(InterlockError, match="cannot hold the tool name"):
        root(context(F, G), family=by_name("gemma4"))
