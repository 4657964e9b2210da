"""Short legal ways to the end: every one found is legal, over a vocabulary of bytes and over a real one."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.constraints.cache import GrammarCache
from interlock.constraints.closers import closers
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.ending import Ending, ends_with
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher
from interlock.constraints.providers.fake import FakeProvider
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import (
    Choice,
    ConstraintSpec,
    FreeText,
    Grammar,
    JsonValue,
    LoweredConstraint,
    Marker,
    Node,
    Regex,
    Sequence,
    Text,
)
from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.hf import hf_tokenizer


def value(schema: Any) -> JsonValue:
    return JsonValue(json.dumps(schema))


def one(**properties: Any) -> JsonValue:
    return value({"type": "object", "properties": properties, "required": list(properties)})


STRING = {"type": "string"}
PERSON = one(
    name=STRING,
    age={"type": "integer", "minimum": 10},
    tags={"type": "array", "items": {"type": "object", "properties": {"k": STRING}, "required": ["k"]}},
)
ONE_OF_TWO = value({"enum": ["left", "right"]})
CALL = Sequence(
    (
        FreeText(("<tool_call>",)),
        Marker("<tool_call>"),
        Text('\n{"name": "f", "arguments": '),
        one(path=STRING),
        Text("}\n"),
        Marker("</tool_call>"),
    )
)
LATE_KEY = value(
    {
        "type": "object",
        "properties": {**{f"o{i}": STRING for i in range(12)}, "late": {"type": "integer"}},
        "required": ["late"],
    }
)
TREE = value(
    {
        "$ref": "#/$defs/n",
        "$defs": {
            "n": {
                "type": "object",
                "properties": {
                    "v": {"type": "integer"},
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/n"}},
                },
                "required": ["v", "kids"],
            }
        },
    }
)
OPEN = replace(
    one(where=json.loads(one(x=STRING, y={"type": "integer"}).schema), who=STRING),
    open_objects=True,
    property_order="any",
)
PLACES: list[tuple[Node, str, int]] = [
    (OPEN, "", 60),
    (OPEN, '{"else": [1], "who": "me", "', 50),
    (OPEN, '{"where": {"y": 1, "wh', 60),
    (PERSON, "", 60),
    (PERSON, '{"name": "J', 50),
    (PERSON, '{"name": "J\\', 50),
    (PERSON, '{"name": "J\\u00', 55),
    (PERSON, '{"name": "J", "age": 1', 20),
    (PERSON, '{"name": "J", "age": 12, "tags": [{"k": "x', 6),
    (one(a={"type": "string", "minLength": 200}), '{"a": "xx', 300),
    (one(a={"type": "string", "pattern": "^[a-z]+\\.txt$"}), '{"a": "no', 10),
    (one(a={"type": "string", "format": "date"}), '{"a": "20', 20),
    (one(a={"type": "number", "exclusiveMinimum": 0}), '{"a": 0.0', 5),
    (one(a={"type": "array", "minItems": 5, "items": {"type": "integer"}}), '{"a": [1', 30),
    (one(a={"type": "array", "minItems": 3, "uniqueItems": True, "items": STRING}), '{"a": ["x"', 40),
    (one(a={"enum": ["a very long word that takes many tokens", "short"]}), "", 20),
    (LATE_KEY, "{", 15),
    (LATE_KEY, '{"o1": "', 20),
    (TREE, '{"v": 1, "kids": [{"v": 2, "kids": [{"v": ', 30),
    (value({}), '[[{"a": [tr', 8),
    (value({"type": "object"}), '{"a": {"b": {"c": [1, "x', 6),
    (Regex("[a-z]+@[a-z]+\\.(com|org)"), "foo", 10),
    (Regex("[0-9]{12}"), "123", 18),
    (Choice(("yes please", "no")), "y", 9),
    (Grammar('start: e\ne: t ("+" t)*\nt: /[0-9]+/ | "(" e ")"', "lark"), "1+(2+(", 4),
    (Grammar('start: "BEGIN" /[a-z ]*/ "END"', "lark"), "BEGINab", 5),
    (CALL, "hm", 60),
    (CALL, '<tool_call>\n{"name": "f", "arguments": {"path": "/tm', 8),
]


class Searching:
    """What a worker has for closing."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
        self.search = self.compiler.endings.search

    def at(self, root: Node, said: str) -> tuple[Matcher, LoweredConstraint]:
        lowered = lower(ConstraintSpec(root=root), self.tokenizer.special_tokens)
        matcher = self.compiler.prepare(lowered).result(30).matcher()
        for token_id in self.tokenizer.encode(said):
            matcher.accept(token_id)
        return matcher, lowered

    def ending(self, root: Node, said: str, never: frozenset[int] = frozenset()) -> Ending | None:
        matcher, lowered = self.at(root, said)
        hints = EndingHints(lowered.closers, lowered.literals, lowered.required, never)
        found = self.search.find(matcher, hints)
        assert found is None or ends_with(matcher, found.token_ids)
        return found


@pytest.fixture(scope="module")
def over_bytes() -> Searching:
    return Searching(byte_tokenizer())


@pytest.fixture(scope="module")
def over_qwen3(shared: Path) -> Searching:
    packed = (shared / "data/tokenizers/qwen3/tokenizer.json.xz").read_bytes()
    return Searching(hf_tokenizer(lzma.decompress(packed).decode()))


@pytest.mark.parametrize(("root", "said", "most_bytes"), PLACES, ids=range(len(PLACES)))
def test_an_ending_is_legal_and_short(over_bytes: Searching, root: Node, said: str, most_bytes: int) -> None:
    ending = over_bytes.ending(root, said)
    assert ending is not None
    assert len(ending.token_ids) <= most_bytes


@pytest.mark.parametrize(("root", "said", "most_bytes"), PLACES, ids=range(len(PLACES)))
def test_over_a_real_vocabulary_it_takes_fewer_tokens(
    over_qwen3: Searching, root: Node, said: str, most_bytes: int
) -> None:
    ending = over_qwen3.ending(root, said)
    assert ending is not None
    assert len(ending.token_ids) <= (most_bytes + 2) // 2


def test_several_levels_are_closed_by_one_token(over_qwen3: Searching) -> None:
    ending = over_qwen3.ending(value({}), '{"a": {"b": {"c": [[1')
    assert ending is not None
    assert len(ending.token_ids) <= 2


def test_no_ending_begins_a_call(over_bytes: Searching) -> None:
    opener = over_bytes.tokenizer.special_tokens["<tool_call>"]
    assert over_bytes.ending(CALL, "hm", frozenset({opener})) is None
    assert over_bytes.ending(CALL, '<tool_call>\n{"name"', frozenset({opener})) is not None


def test_the_search_leaves_the_matcher_alone(over_bytes: Searching) -> None:
    matcher, lowered = over_bytes.at(PERSON, '{"name": "J')
    over_bytes.search.find(matcher, EndingHints(literals=lowered.literals))
    assert matcher.validate(list(b'ane", "age": 10, "tags": []}')) == 28


def test_a_search_that_would_take_too_long_finds_nothing(over_bytes: Searching) -> None:
    assert over_bytes.ending(Regex("[ab]*(a{900}c){5}"), "") is None


def test_another_grammar_engine_needs_only_the_contract(over_bytes: Searching) -> None:
    answers = [list(b"abcd"), list(b"abx"), list(b"ay")]
    matcher = FakeProvider(over_bytes.tokenizer).compile(str(answers)).matcher()
    matcher.accept(ord("a"))
    ending = over_bytes.search.find(matcher, EndingHints())
    assert ending is not None
    assert ends_with(matcher, ending.token_ids)


def test_a_matcher_that_fails_on_the_way_is_no_way(over_bytes: Searching) -> None:
    matcher = FakeProvider(over_bytes.tokenizer).compile('[[97, "error"]]').matcher()
    assert over_bytes.search.find(matcher, EndingHints()) is None
    assert matcher.error is None


def test_closers_are_the_fixed_texts_of_a_spec() -> None:
    assert closers(CALL) == ("<tool_call>", '\n{"name": "f", "arguments": ', "}\n", "</tool_call>")
    assert closers(Grammar('start: "BEGIN" /x*/ "END"', "lark")) == ("BEGIN", "END")


UNIQUE = one(tags={"type": "array", "items": STRING, "uniqueItems": True, "minItems": 3})


def test_a_search_in_which_guards_have_much_to_follow_ends_by_their_number(
    over_bytes: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert over_bytes.ending(UNIQUE, '{"tags": ["') is not None
    monkeypatch.setattr("interlock.constraints.ending.MAX_FOLLOWED", 3)
    assert over_bytes.ending(UNIQUE, '{"tags": ["') is None
    assert over_bytes.ending(ONE_OF_TWO, "") is not None, "no guard, nothing followed"


def test_a_clock_is_the_last_resort(over_bytes: Searching, monkeypatch: pytest.MonkeyPatch) -> None:
    assert over_bytes.ending(PERSON, '{"name": "J') is not None
    monkeypatch.setattr("interlock.constraints.ending.MAX_CPU_S", 0.0)
    assert over_bytes.ending(PERSON, '{"name": "J') is None
