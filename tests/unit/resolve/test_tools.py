from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.core.messages import Message
from interlock.core.output_format import JsonObjectFormat, OutputFormat, TextFormat
from interlock.core.request import GenerateRequest
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.resolve.tools import resolve_tools

A, B, C = Tool(name="a"), Tool(name="b"), Tool(name="c")
STRICT = Tool(name="s", strict=True)
USER = Message(role="user", content="hi")
AUTO = ToolChoice(mode="auto")
NONE = ToolChoice(mode="none")
REQUIRED = ToolChoice(mode="required")
NAMED_B = ToolChoice(mode="named", name="b")


def request(**fields: object) -> GenerateRequest:
    return replace(GenerateRequest(request_id="r", model="m", messages=(USER,)), **fields)  # type: ignore[arg-type]


def developer(*tools: Tool) -> Message:
    return Message(role="developer", content=None if tools else "be kind", tools=tools)


def context(**fields: object) -> ToolContext:
    return resolve_tools(request(**fields), "auto")


def refusal(default: str = "auto", **fields: object) -> InterlockError:
    with pytest.raises(InterlockError) as caught:
        resolve_tools(request(**fields), default)  # type: ignore[arg-type]
    return caught.value


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def test_request_tools_come_before_those_of_developer_messages_in_message_order():
    resolved = context(tools=(A,), messages=(developer(C), USER, developer(B, STRICT), USER))
    assert names(resolved.effective_tools) == ["a", "c", "b", "s"]
    assert names(resolved.initial_tools) == ["a"]


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, "none"),
        ({"messages": (developer(), USER)}, "none"),
        ({"tools": (A,)}, "auto"),
        ({"messages": (developer(A), USER)}, "auto"),
    ],
)
def test_an_absent_choice_means_auto_where_any_tool_is_declared(fields, mode):
    assert context(**fields).tool_choice.mode == mode


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        (None, ["a", "b", "c"]),
        (AUTO, ["a", "b", "c"]),
        (REQUIRED, ["a", "b", "c"]),
        (NONE, []),
        (NAMED_B, ["b"]),
        (ToolChoice(mode="auto", allowed=("c", "a")), ["a", "c"]),
        (ToolChoice(mode="required", allowed=("c",)), ["c"]),
    ],
)
def test_the_choice_narrows_what_may_be_called_and_never_the_prompt(choice, called):
    resolved = context(tools=(A, B), messages=(developer(C), USER), tool_choice=choice)
    assert names(resolved.callable_tools) == called
    assert names(resolved.effective_tools) == ["a", "b", "c"]


def test_none_without_tools_is_fine():
    assert context(tool_choice=NONE) == ToolContext(tool_choice=NONE)


@pytest.mark.parametrize(("parallel", "expected"), [(None, True), (True, True), (False, False)])
def test_parallel_calls_are_allowed_unless_refused(parallel, expected):
    assert context(tools=(A,), parallel_tool_calls=parallel).parallel_tool_calls is expected


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"tools": ()}, "tools", "`tools` must not be an empty array"),
        ({"tools": (), "tool_choice": NONE}, "tools", "`tools` must not be an empty array"),
        ({"tools": (A, B, A)}, "tools[2].function.name", "duplicate tool name `a`"),
        (
            {"tools": (A,), "messages": (developer(B), developer(C, A), USER)},
            "messages[1].tools[1].function.name",
            "duplicate tool name `a`",
        ),
        ({"tool_choice": AUTO}, "tool_choice", "tool_choice requires at least one available tool"),
        ({"tool_choice": REQUIRED}, "tool_choice", "tool_choice requires at least one available tool"),
        ({"tool_choice": NAMED_B}, "tool_choice", "tool_choice requires at least one available tool"),
        ({"tools": (A,), "tool_choice": NAMED_B}, "tool_choice", "tool_choice function `b` was not found"),
        (
            {"tools": (A,), "tool_choice": ToolChoice(mode="auto", allowed=("a", "x", "y"))},
            "tool_choice",
            "tool_choice function `x`, `y` was not found",
        ),
        ({"tools": (A,), "tool_choice": ToolChoice(mode="auto", allowed=())}, "tool_choice", "allows no tool"),
        ({"tools": (Tool(name=""),)}, "tools[0].function.name", "''"),
        ({"tools": (A, Tool(name="x.y"))}, "tools[1].function.name", "'x.y'"),
        ({"tools": (Tool(name="x" * 65),)}, "tools[0].function.name", "64"),
        ({"tools": (Tool(name="a\n"),)}, "tools[0].function.name", "letters"),
        ({"tools": (Tool(name="é"),)}, "tools[0].function.name", "letters"),
        ({"tools": (Tool(name="a", description="\ud800"),)}, "tools[0].function.description", "surrogate"),
    ],
)
def test_a_wrong_declaration_or_choice_is_named(fields, param, words):
    error = refusal(**fields)
    assert error.code == "invalid_tools"
    assert error.param == param
    assert words in error.message


def test_a_choice_can_name_a_tool_of_a_developer_message():
    assert names(context(messages=(developer(A, B), USER), tool_choice=NAMED_B).callable_tools) == ["b"]


@pytest.mark.parametrize(
    ("tools", "choice", "format_", "reason"),
    [
        ((A, B), AUTO, TextFormat(), ""),
        ((A, B), None, TextFormat(), ""),
        ((A, STRICT), NONE, TextFormat(), ""),
        ((A, B), NONE, JsonObjectFormat(), ""),
        ((A, B), ToolChoice(mode="auto", allowed=("b", "a")), TextFormat(), ""),
        ((A, B), REQUIRED, TextFormat(), "tool_choice requires a call"),
        ((A, B), NAMED_B, TextFormat(), "tool_choice names `b`"),
        ((A, B), ToolChoice(mode="required", allowed=("a",)), TextFormat(), "tool_choice requires a call"),
        (
            (A, B),
            ToolChoice(mode="auto", allowed=("a",)),
            TextFormat(),
            "tool_choice allows only some of the tools",
        ),
        ((A, STRICT), AUTO, TextFormat(), "tool `s` is strict"),
        ((A, STRICT), None, TextFormat(), "tool `s` is strict"),
        ((A, B), AUTO, JsonObjectFormat(), ""),
    ],
)
def test_calls_are_constrained_where_the_request_was_promised_something(
    tools: tuple[Tool, ...], choice: ToolChoice | None, format_: OutputFormat, reason: str
):
    fields = {"tools": tools, "tool_choice": choice, "output_format": format_}
    resolved = context(**fields)
    assert (resolved.constrained, resolved.constrained_reason) == (bool(reason), reason)
    if reason:
        assert refusal("off", **fields).code == "conflicting_parameters"
    else:
        assert not resolve_tools(request(**fields), "off").constrained


def test_policy_all_constrains_every_request_that_can_call():
    assert resolve_tools(request(tools=(A,)), "all").constrained_reason == "tool_constraints is all"
    assert not resolve_tools(request(tools=(A,), tool_choice=NONE), "all").constrained
    assert not resolve_tools(request(), "all").constrained


def test_the_requests_policy_goes_before_the_servers():
    assert resolve_tools(request(tools=(A,), tool_constraints="all"), "off").constrained
    assert not resolve_tools(request(tools=(A,), tool_constraints="auto"), "all").constrained
    assert resolve_tools(request(tools=(A,), tool_choice=REQUIRED, tool_constraints="auto"), "off").constrained


def test_a_refusal_says_who_switched_constraints_off():
    assert "the server sets tool_constraints to off" in refusal("off", tools=(STRICT,)).message
    error = refusal("auto", tools=(A,), tool_choice=REQUIRED, tool_constraints="off")
    assert "this request sets tool_constraints to off" in error.message
    assert error.param == "tool_choice"
