from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.events import (
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.errors import InterlockError
from interlock.families.base import (
    Arguments,
    Lit,
    Mark,
    ModelFamily,
    Name,
    ReasoningFormat,
    ToolCallSyntax,
)
from interlock.families.qwen3 import FAMILY as QWEN3
from interlock.families.wire.parse import StreamParser, call_id
from interlock.families.wire.spell import spell_calls

TOKENS = {1: "<think>", 2: "</think>", 3: "<tool_call>", 4: "</tool_call>", 5: "<|fim_pad|>"}
SPECIAL = re.compile("|".join(map(re.escape, TOKENS.values())))
IDS = {text: token_id for token_id, text in TOKENS.items()}

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'

# A family of other pieces: a bare name and bare arguments between markers, in a section.
SECTIONED = ModelFamily(
    name="sectioned",
    tool_calls=ToolCallSyntax(
        section_open=(Mark("<calls>"),),
        call=(
            Mark("<call>"),
            Lit("function"),
            Mark("<sep>"),
            Name(),
            Lit("\n```json\n"),
            Arguments(),
            Lit("\n```"),
            Mark("</call>"),
        ),
        section_close=(Mark("</calls>"),),
        separator="\n",
    ),
    reasoning=ReasoningFormat(open="<think>", close="</think>", closed_by_tool_call=True),
)


def parser(family: ModelFamily = QWEN3, **options: Any) -> StreamParser:
    ids = (f"call_{number}" for number in itertools.count())
    known = {"special_tokens": None, "thinking": "optional", "tools": "parse", "new_id": lambda: next(ids)}
    return StreamParser(family, **{**known, **options})


def joined(events: Iterable[ParserEvent]) -> list[ParserEvent | str]:
    """Neighbouring deltas as one."""
    out: list[Any] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta | ReasoningDelta) and type(last) is type(event):
            out[-1] = type(event)(text=last.text + event.text)
        elif isinstance(event, ToolCallArguments) and isinstance(last, ToolCallArguments):
            out[-1] = ToolCallArguments(index=event.index, text=last.text + event.text)
        else:
            out.append(event)
    return out


def read(
    text: str, cuts: Iterable[int] = (), *, truncated: bool = False, tokens: bool = False, **options: Any
) -> list[Any]:
    """Joined events; an error is the last entry. tokens: special spellings arrive as tokens."""
    machine = parser(special_tokens=TOKENS if tokens else None, **options)
    events: list[ParserEvent] = []
    try:
        for piece in pieces(text, cuts):
            if tokens and piece in IDS:
                events += machine.push_token(IDS[piece], piece)
            else:
                events += machine.push_text(piece)
        events += machine.finish(truncated)
    except InterlockError as error:
        return [*joined(events), error.code]
    return joined(events)


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    """``text`` cut at ``cuts``, and around special spellings if there is none of those inside a piece."""
    edges = sorted({0, *cuts, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def token_edges(text: str) -> list[int]:
    return [edge for match in SPECIAL.finditer(text) for edge in match.span()]


def call(index: int, name: str, arguments: str) -> list[ParserEvent]:
    return [
        ToolCallStart(index=index, id=f"call_{index}", name=name),
        ToolCallArguments(index=index, text=arguments),
        ToolCallEnd(index=index),
    ]


def text(value: str) -> TextDelta:
    return TextDelta(text=value)


def thought(value: str) -> ReasoningDelta:
    return ReasoningDelta(text=value)


CASES: dict[str, tuple[str, list[Any]]] = {
    "plain text": ("Hello, <b>world</b>\n", [text("Hello, <b>world</b>\n")]),
    "indentation without calls is kept": ("    if x:\n        y()\n", [text("    if x:\n        y()\n")]),
    "one call": (CALL, call(0, "f", '{"a": 1}')),
    "compact call": ('<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>', call(0, "f", '{"a":1}')),
    "two equal calls stay two": (f"{CALL}\n{CALL}", [*call(0, "f", '{"a": 1}'), *call(1, "f", '{"a": 1}')]),
    "calls side by side": (f"{CALL}{CALL}\n\n", [*call(0, "f", '{"a": 1}'), *call(1, "f", '{"a": 1}')]),
    "text before a call": (f"Let me see.\n{CALL}", [text("Let me see."), *call(0, "f", '{"a": 1}')]),
    "a blank line before a call is half text": (f"So\n\n{CALL}", [text("So\n"), *call(0, "f", '{"a": 1}')]),
    "only white space before a call": (f"\n\n{CALL}", call(0, "f", '{"a": 1}')),
    "text after a call": (f"{CALL}\nDone.", [*call(0, "f", '{"a": 1}'), text("\nDone.")]),
    "thinking, answer": ("<think>\nhm\n</think>\n\nHi", [thought("hm"), text("Hi")]),
    "thinking, call": (f"<think>\nhm\n</think>\n\n{CALL}", [thought("hm"), *call(0, "f", '{"a": 1}')]),
    "empty thinking": ("<think>\n\n</think>\n\nHi", [text("Hi")]),
    "inner lines of thinking stay": ("<think>\na\n\nb\n\n</think>\nHi", [thought("a\n\nb\n"), text("Hi")]),
    "white space beyond the family's is text": ("<think>x</think>\n\n\n Hi", [thought("x"), text("\n Hi")]),
    "repeated opening of thinking": ("<think>\n<think>\nhm</think>Hi", [thought("hm"), text("Hi")]),
    "stray reasoning markers in an answer": ("a</think>b<think>c", [text("abc")]),
    "a draft call in thinking is thinking": (
        f"<think>maybe {CALL}</think>\n{CALL.replace('1', '2')}",
        [thought(f"maybe {CALL}"), *call(0, "f", '{"a": 2}')],
    ),
    "a call that ends thinking never happens here": (f"<think>\n{CALL}\n</think>", [thought(CALL)]),
    "keys in the other order": (
        '<tool_call>\n{"arguments": {"a": [1, {"b": "}"}]}, "name": "f"}\n</tool_call>',
        call(0, "f", '{"a": [1, {"b": "}"}]}'),
    ),
    "parameters for arguments": ('<tool_call>{"name": "f", "parameters": {}}</tool_call>', call(0, "f", "{}")),
    "other keys beside": (
        '<tool_call>{"id": 7, "name": "f", "x": {"y": [1]}, "arguments": {} , "z": -1.5e3}</tool_call>',
        call(0, "f", "{}"),
    ),
    "no arguments at all": ('<tool_call>{"name": "f"}</tool_call>', call(0, "f", "{}")),
    "arguments as a string of JSON": (
        '<tool_call>{"name": "f", "arguments": "{\\"a\\": \\"\\\\n\\"}"}</tool_call>',
        call(0, "f", '{"a": "\\n"}'),
    ),
    "spelling of arguments is the model's": (
        '<tool_call>{"name": "f", "arguments": { "b":1.0,"a" : 1e400, "c": 123456789012345678901 }}</tool_call>',
        call(0, "f", '{ "b":1.0,"a" : 1e400, "c": 123456789012345678901 }'),
    ),
    "escaped name": ('<tool_call>{"name": "\\u00e9", "arguments": {}}</tool_call>', call(0, "é", "{}")),
    "marker text in a string is data": (
        '<tool_call>{"name": "f", "arguments": {"a": "</tool_call><tool_call></think>"}}</tool_call>',
        call(0, "f", '{"a": "</tool_call><tool_call></think>"}'),
    ),
    "a name that no tool has is passed on": ('<tool_call>{"name": "nope"}</tool_call>', call(0, "nope", "{}")),
    "the closing marker may be missing": (CALL.removesuffix("\n</tool_call>"), call(0, "f", '{"a": 1}')),
    "the last brace may be missing": (
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}\n</tool_call>\nOk',
        [*call(0, "f", '{"a": 1}'), text("\nOk")],
    ),
    "a brace too many is text": (
        '<tool_call>{"name": "f", "arguments": {"a": 1}}}</tool_call>',
        [*call(0, "f", '{"a": 1}'), text("}</tool_call>")],
    ),
    "no closing marker between calls": (
        CALL.removesuffix("</tool_call>") + CALL,
        [*call(0, "f", '{"a": 1}'), *call(1, "f", '{"a": 1}')],
    ),
    "prose about a marker": (
        "The `<tool_call>` tag wraps a call. That is all.",
        [text("The `<tool_call>` tag wraps a call. That is all.")],
    ),
    "white space before what was no call": ("The\n<tool_call>\ntag", [text("The\n<tool_call>\ntag")]),
    "JSON without markers is text": (
        '```json\n{"name": "f", "arguments": {}}\n```',
        [text('```json\n{"name": "f", "arguments": {}}\n```')],
    ),
    "no object": ("<tool_call>[1]</tool_call>", [text("<tool_call>[1]</tool_call>")]),
    "no name": ('<tool_call>{"arguments": {}}</tool_call>', [text('<tool_call>{"arguments": {}}</tool_call>')]),
    "arguments that are no object": (
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        [text('<tool_call>{"name": "f", "arguments": [1]}</tool_call>')],
    ),
    "a string that holds no object": (
        '<tool_call>{"name": "f", "arguments": "{}{}"}</tool_call>',
        [text('<tool_call>{"name": "f", "arguments": "{}{}"}</tool_call>')],
    ),
    "an end inside an unannounced call": (
        'Hi <tool_call>\n{"name": "f"',
        [text('Hi <tool_call>\n{"name": "f"')],
    ),
    "a failed call, then a good one": (
        f"<tool_call>\n{CALL}",
        [text("<tool_call>"), *call(0, "f", '{"a": 1}')],
    ),
    "broken after it was announced": (
        '<tool_call>{"name": "f", "arguments": {"a": tru}}</tool_call>',
        [*call(0, "f", '{"a": tru')[:2], "invalid_model_output"],
    ),
    "an end inside an announced call": (
        '<tool_call>{"name": "f", "arguments": {"a',
        [*call(0, "f", '{"a')[:2], "invalid_model_output"],
    ),
    "a second name": (
        '<tool_call>{"name": "f", "arguments": {}, "name": "g"}</tool_call>',
        [*call(0, "f", "{}"), text('"g"}</tool_call>')],
    ),
}
# With marker tokens these two read differently: what is left of a marker is a token, not text.
TEXT_ONLY = {"a second name", "a brace too many is text"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tokens", [False, True], ids=["text", "tokens"])
def test_events_of_a_turn_under_every_split(name: str, tokens: bool) -> None:
    turn, expected = CASES[name]
    edges = token_edges(turn) if tokens else []
    if tokens and name == "marker text in a string is data":
        edges = [
            edge for edge in edges if edge <= len("<tool_call>") or edge >= len(turn) - len("</tool_call>")
        ]
    assert read(turn, edges, tokens=tokens) == expected
    everywhere = sorted({*edges, *range(len(turn))}) if not tokens else None
    if everywhere is not None:
        assert read(turn, everywhere) == expected
    for cut in range(len(turn)):
        inside_token = tokens and any(m.start() < cut < m.end() for m in SPECIAL.finditer(turn))
        if not inside_token:
            assert read(turn, [*edges, cut], tokens=tokens) == expected, cut


@given(st.sampled_from(sorted(CASES)), st.lists(st.integers(0, 120), max_size=12))
def test_events_do_not_depend_on_the_split(name: str, cuts: list[int]) -> None:
    turn, expected = CASES[name]
    assert read(turn, [cut for cut in cuts if cut < len(turn)]) == expected


TRUNCATED: dict[str, list[Any]] = {
    "Hello <tool_ca": [text("Hello <tool_ca")],
    "Hello <tool_call>": [text("Hello ")],
    'Hello <tool_call>\n{"na': [text("Hello ")],
    'Hello <tool_call>\n{"name": "f"': [text("Hello "), ToolCallStart(index=0, id="call_0", name="f")],
    '<tool_call>\n{"name": "f", "arguments": {"a': call(0, "f", '{"a')[:2],
    '<tool_call>\n{"name": "f", "arguments": {}': call(0, "f", "{}")[:2],
    CALL[:-5]: call(0, "f", '{"a": 1}'),
    "<think>\nhm \n": [thought("hm \n")],
    "<think>hm</thi": [thought("hm</thi")],
}


@pytest.mark.parametrize("turn", TRUNCATED)
def test_a_cut_answer_holds_no_whole_call_that_was_not_whole(turn: str) -> None:
    for size in (1, 2, 3, len(turn)):
        assert read(turn, range(0, len(turn), size), truncated=True) == TRUNCATED[turn]


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
