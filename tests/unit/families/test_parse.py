"""Events of whole turns, under every cut of the text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.events import (
    ToolCallStart,
)
from tests.unit.families.reading import (
    CALL,
    SPECIAL,
    call,
    read,
    text,
    thought,
    token_edges,
)

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
