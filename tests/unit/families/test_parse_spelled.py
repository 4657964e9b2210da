"""Calls of any content are read back, and hostile text takes linear time."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.events import (
    ParserEvent,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.tools import Tool
from interlock.families.qwen3 import FAMILY as QWEN3
from interlock.families.registry import by_name
from interlock.families.wire.spell import spell_calls
from tests.unit.families.reading import (
    IDS,
    TOKENS,
    call,
    joined,
    parser,
    pieces,
    read,
)

ARGUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)


@given(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=3), st.booleans(), st.randoms())
def test_calls_that_the_family_spells_are_read_back(
    calls: list[tuple[str, dict[str, Any]]], tokens: bool, chance: random.Random
) -> None:
    turn = spell_calls(QWEN3.tool_calls, calls)
    # Only the markup arrives as tokens; the same text in a string is spelt with ordinary tokens.
    markup = [edge for m in re.finditer(r"^</?tool_call>$", turn, re.MULTILINE) for edge in m.span()]
    cuts = [
        cut
        for cut in chance.choices(range(len(turn)), k=8)
        if not any(a < cut < b for a, b in zip(markup[::2], markup[1::2], strict=True))
    ]
    machine = parser(special_tokens=TOKENS if tokens else None)
    events: list[ParserEvent] = []
    position = 0
    for piece in pieces(turn, [*markup, *cuts]):
        is_token = tokens and position in markup[::2]
        events += machine.push_token(IDS[piece], piece) if is_token else machine.push_text(piece)
        position += len(piece)
    events += machine.finish(truncated=False)
    arguments = [event.text for event in joined(events) if isinstance(event, ToolCallArguments)]
    names = [event.name for event in events if isinstance(event, ToolCallStart)]
    assert list(zip(names, map(json.loads, arguments), strict=True)) == calls
    assert not [event for event in events if isinstance(event, TextDelta)]


def _value(kind: str, text: str, name: str = "") -> str:
    key = f' name="{name}"' if name else ""
    return f'<cofl:value{key} type="{kind}">{text}</cofl:value>'


NESTED = _value("list", _value("raw", "p ") + "\n" + _value("json", "3") + _value("list", ""), "l")
NESTED += _value("dict", _value("raw", "", "k&quot;") + _value("dict", " ", "e"), "d")
NESTED += _value("json", '{"z": "</cofl:value>"}', "j")


@pytest.mark.parametrize("size", [1, 2, 3, 11, 1000])
def test_lists_and_objects_of_tags_are_read_at_any_depth(size: int) -> None:
    turn = f'<cofl:tool_calls><cofl:tool_call id="0" name="f">{NESTED}</cofl:tool_call></cofl:tool_calls>'
    events = read(turn, range(0, len(turn), size), family=by_name("cohere_cofl"), thinking="none")
    expected = '{"l": ["p ", 3, []], "d": {"k\\"": "", "e": {}}, "j": {"z": "</cofl:value>"}}'
    assert events == call(0, "f", expected)


@pytest.mark.parametrize(
    "nested",
    [
        _value("list", _value("raw", "p"), "l").removesuffix("</cofl:value>"),
        _value("list", "text", "l"),
        _value("dict", _value("raw", "no name"), "d"),
        _value("list", _value("raw", "a name", "n"), "l"),
        _value("set", "", "s"),
        "".join(f'<cofl:value name="{name}" type="dict">' for name in "ab" * 300),
    ],
)
def test_tags_that_do_not_nest_are_no_call(nested: str) -> None:
    turn = f'<cofl:tool_calls><cofl:tool_call id="0" name="f">{nested}</cofl:tool_call></cofl:tool_calls>'
    events = read(turn, family=by_name("cohere_cofl"), thinking="none")
    assert not [event for event in events if isinstance(event, ToolCallEnd)]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("null", None),
        ("null pointer", "null pointer"),
        ("nul", "nul"),
        (" true", True),
        ("tru\n", "tru\n"),
        ("12 ", 12),
        ("12 apples", "12 apples"),
        ("-", "-"),
        ("NaN", "NaN"),
        ('"x"', '"x"'),
        ("[1]", "[1]"),
        ("[1", "[1"),
        ("  the\n", "  the\n"),
        ("", ""),
    ],
)
def test_text_that_may_yet_be_another_value_waits_until_it_is_whole(raw: str, value: Any) -> None:
    known = Tool(
        name="f",
        parameters='{"type": "object", "properties": {"a": {"type": ["string", "null", "boolean", "integer"]}}}',
    )
    turn = f"<tool_call>\n<function=f>\n<parameter=a>\n{raw}\n</parameter>\n</function>\n</tool_call>"
    for size in range(1, len(turn)):
        events = read(turn, range(0, len(turn), size), family=by_name("qwen3_coder"), declared=(known,))
        (arguments,) = (event.text for event in events if isinstance(event, ToolCallArguments))
        assert json.loads(arguments) == {"a": value}


def test_white_space_around_a_numbered_name_is_no_part_of_it() -> None:
    begin, arguments, end = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
    turn = f"{begin}functions.a:0\n{arguments}{{}}{end}{begin}\nfunctions.b-c:1 {arguments}{{}}{end}"
    for size in range(1, len(turn)):
        events = read(turn, range(0, len(turn), size), family=by_name("kimi_k2"))
        starts = [(event.name, event.id) for event in events if isinstance(event, ToolCallStart)]
        assert starts == [("a", "functions.a:0"), ("b-c", "functions.b-c:1")]


@pytest.mark.parametrize(
    "hostile",
    [
        "<" * 200_000,
        "<tool_call>" * 15_000,
        "\n" * 200_000,
        '<tool_call>{"' * 12_000,
        '<tool_call>{"name": "f", "arguments": ' + '{"a":' * 40_000,
        "<think>" * 20_000,
        "</tool_call>" * 12_000,
    ],
    ids=["angle", "openers", "newlines", "envelopes", "depth", "thoughts", "closers"],
)
@pytest.mark.parametrize("size", [7, 10**6])
def test_time_is_linear_on_hostile_text(hostile: str, size: int) -> None:
    machine = parser(tools="hide")
    start = time.process_time()
    for at in range(0, len(hostile), size):
        machine.push_text(hostile[at : at + size])
    machine.finish(truncated=True)
    assert time.process_time() - start < 3
