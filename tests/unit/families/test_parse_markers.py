"""What is a marker and what only looks like one, by token and by text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlock.core.events import (
    ToolCallArguments,
)
from interlock.errors import InterlockError
from interlock.families.wire.parse import call_id
from interlock.families.wire.spell import spell_calls
from tests.unit.families.reading import (
    CALL,
    SECTIONED,
    TOKENS,
    call,
    joined,
    parser,
    read,
    text,
    thought,
    token_edges,
)


def test_marker_tokens_are_recognised_by_id_and_look_alikes_are_text() -> None:
    turn = "It says </think> and <tool_call>{}"
    assert read(turn, tokens=True) == [text(turn)]
    machine = parser(special_tokens=TOKENS, thinking="open")
    assert joined(machine.push_text("a </think> b")) == [thought("a </think> b")]
    assert machine.in_reasoning
    machine.push_token(2, "</think>")
    assert not machine.in_reasoning


def test_a_marker_token_inside_an_argument_is_data() -> None:
    turn = '<tool_call>{"name": "f", "arguments": {"a": "</tool_call><|fim_pad|>"}}</tool_call>'
    assert read(turn, token_edges(turn), tokens=True) == call(0, "f", '{"a": "</tool_call><|fim_pad|>"}')


def test_a_marker_token_in_the_structure_ends_a_whole_call_and_breaks_another() -> None:
    turn = '<tool_call>{"name": "f", "arguments": {}</tool_call><tool_call>{"name": "g", "arguments": {"a"</tool_call>'
    expected = [*call(0, "f", "{}"), *call(1, "g", '{"a"')[:2], "invalid_model_output"]
    assert read(turn, token_edges(turn), tokens=True) == expected
    turn = '<tool_call>{"name"</tool_call> x'
    assert read(turn, token_edges(turn), tokens=True) == [text(turn)]


def test_a_token_that_is_no_marker_is_text() -> None:
    turn = "<think>a<|fim_pad|>b</think>c<|fim_pad|>"
    assert read(turn, token_edges(turn), tokens=True) == [thought("a<|fim_pad|>b"), text("c<|fim_pad|>")]


@pytest.mark.parametrize(
    ("thinking", "turn", "expected"),
    [
        ("open", "\nhm</think>\n\nHi", [thought("hm"), text("Hi")]),
        ("open", "<think>\nhm</think>Hi", [thought("hm"), text("Hi")]),
        ("closed", CALL, call(0, "f", '{"a": 1}')),
        ("closed", "<think>\n\n</think>\n\nHi", [text("Hi")]),
        ("none", "a</think>\n\nb", [text("a</think>\n\nb")]),
    ],
)
def test_reasoning_starts_as_the_prompt_left_it(thinking: str, turn: str, expected: list[Any]) -> None:
    assert read(turn, range(len(turn)), thinking=thinking) == expected
    assert read(turn, thinking=thinking) == expected


@pytest.mark.parametrize("turn", [f"  a\n{CALL}\n  b\n", "    print('<tool_call>')\n"])
def test_without_tools_the_text_passes_unchanged(turn: str) -> None:
    assert read(turn, range(len(turn)), tools="ignore", thinking="none") == [text(turn)]


def test_hidden_calls_are_consumed_and_what_is_no_call_is_text() -> None:
    assert read(f"a\n{CALL}\nb", tools="hide") == [text("a\nb")]
    assert read(f"{CALL}\n{CALL}", tools="hide") == []
    broken = '<tool_call>{"name": "f", "arguments": {"a": x}}'
    assert read(broken, tools="hide") == [text(broken)]
    assert read(broken[:-6], range(len(broken)), tools="hide", truncated=True) == []


def test_no_event_before_an_error_is_lost() -> None:
    machine = parser()
    events = machine.push_text('Hi <tool_call>{"name": "f", "arguments": {"a": x}}')
    assert joined(events) == [text("Hi "), *call(0, "f", '{"a": ')[:2]]
    for _ in range(2):
        with pytest.raises(InterlockError, match="not in the form of its family"):
            machine.push_text("more")
    with pytest.raises(InterlockError):
        machine.finish(truncated=True)


def test_in_call_is_true_until_the_call_is_whole() -> None:
    machine = parser()
    seen = []
    for char in '<tool_call>{"name": "f", "arguments": {}}</tool_call>':
        machine.push_text(char)
        seen.append(machine.in_call)
    assert seen.index(True) == len("<tool_call>") - 1
    assert not any(seen[len('<tool_call>{"name": "f", "arguments": {}') - 1 :])


def test_arguments_stream_as_they_arrive() -> None:
    machine = parser()
    machine.push_text('<tool_call>{"name": "write", "arguments": {"text": "')
    for word in ("one ", "two\\n", "three"):
        assert machine.push_text(word) == [ToolCallArguments(index=0, text=word)]


def test_ids_are_fresh_and_long() -> None:
    assert re.fullmatch("call_[0-9a-f]{32}", call_id())
    assert call_id() != call_id()


SECTION = (
    'Look.<calls><call>function<sep>a-b\n```json\n{"x": "</call>"}\n```</call>\n'
    "<call>function<sep>b\n```json\n{}\n```</call></calls>"
)


def test_sections_bare_names_and_code_fences() -> None:
    expected = [text("Look."), *call(0, "a-b", '{"x": "</call>"}'), *call(1, "b", "{}")]
    for cut in range(len(SECTION)):
        assert read(SECTION, [cut], family=SECTIONED) == expected
    assert read(SECTION, range(len(SECTION)), family=SECTIONED) == expected
    spelt = spell_calls(SECTIONED.tool_calls, [("a-b", {"x": "</call>"}), ("b", {})])
    assert "Look." + spelt == SECTION


def test_a_call_may_end_thinking_where_the_family_says_so() -> None:
    turn = "<think>\nneed data" + SECTION.removeprefix("Look.")
    one = turn.replace("<calls>", "").replace("</calls>", "")
    expected = [thought("need data"), *call(0, "a-b", '{"x": "</call>"}'), *call(1, "b", "{}")]
    for cut in range(len(one)):
        assert read(one, [cut], family=SECTIONED) == expected
