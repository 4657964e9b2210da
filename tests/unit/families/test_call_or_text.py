"""What only looks like a call is text, and is told as soon as that is known."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.events import TextDelta
from interlock.families.base import ModelFamily, Thinking
from interlock.families.registry import FAMILIES, by_name
from interlock.families.wire.parse import StreamParser, ToolParsing
from tests.unit.families.test_reported_cases import read, tool

GET = tool("get", u={"type": "integer"})
EACH_FAMILY = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@pytest.mark.parametrize(
    ("family", "answer"),
    [
        ("llama3", '{"name": "Bob", "age": 3}'),
        ("llama3", '{"name": "fetch", "parameters": {"text": "<|python_tag|>"}}'),
        ("xlam", '[{"name": "Bob", "age": 3}, {"name": "Ann", "age": 4}]'),
        ("xlam", '[{"name": "fetch", "arguments": {"u": 1}}]'),
        ("llama4", "[fetch(u=1), get(u=2)]"),
        ("toolace", '[print("x")] prints'),
    ],
)
def test_where_calls_have_no_marker_only_the_name_of_a_tool_makes_one(family: str, answer: str) -> None:
    for size in range(1, len(answer) + 1):
        assert read(family, answer, (GET,), size) == ("", answer, [])


@pytest.mark.parametrize(
    ("family", "call"),
    [
        ("llama3", '{"name": "get", "parameters": {"u": 1}}'),
        ("llama3", '{"name": "get", "arguments": {"u": 1}}'),
        ("xlam", '[{"name": "get", "arguments": {"u": 1}}]'),
        ("llama4", "[get(u=1)]"),
        ("toolace", "[get(u=1)]"),
    ],
)
def test_the_name_of_a_tool_makes_a_call_and_so_does_any_where_no_tools_are_known(
    family: str, call: str
) -> None:
    for tools in ((GET,), ()):
        for size in (1, len(call)):
            assert read(family, call, tools, size) == ("", "", [("get", {"u": 1})])


def test_behind_a_marker_the_name_of_no_tool_is_passed_on() -> None:
    call = '<|python_tag|>{"name": "fetch", "parameters": {"u": 1}}'
    for size in range(1, len(call) + 1):
        assert read("llama3", call, (GET,), size) == ("", "", [("fetch", {"u": 1})])


def test_an_answer_that_looks_like_a_call_is_shown_though_calls_are_hidden() -> None:
    answer = '{"name": "Bob", "age": 3}'
    parser = StreamParser(
        by_name("llama3"), special_tokens=None, thinking="none", tools="hide", declared=(GET,)
    )
    assert _text([*parser.push_text(answer), *parser.finish(False)]) == answer


def _text(events: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def _parser(family: ModelFamily, tools: ToolParsing) -> StreamParser:
    thinking: Thinking = "closed" if family.reasoning else "none"
    return StreamParser(family, special_tokens=None, thinking=thinking, tools=tools, declared=(GET,))


@EACH_FAMILY
def test_prose_about_a_marker_does_not_stop_the_stream(family: ModelFamily) -> None:
    for opener in family.tool_calls.openers:
        for behind in ("` tag wraps a call. ", " is a tag. ", "\n"):
            prose = f"The `{opener}{behind}" + "word " * 200
            parser, told = _parser(family, "parse"), 0
            for given, char in enumerate(prose, 1):
                told += len(_text(parser.push_text(char)))
                assert given - told <= 500


@EACH_FAMILY
def test_without_tools_a_marker_is_text_and_indentation_stays(family: ModelFamily) -> None:
    marker = family.tool_calls.opener or family.tool_calls.bare
    for code in (f'    if x:\n        print("{marker}")\n', f"{marker}x\n  y\n\n"):
        for size in (1, 3, len(code)):
            parser = _parser(family, "ignore")
            events = [
                event for at in range(0, len(code), size) for event in parser.push_text(code[at : at + size])
            ]
            assert _text([*events, *parser.finish(False)]) == code
