"""Where the plan of a guard tells that something new can always come, masks are those of a search that looks for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.guards.matcher import GuardedGrammar, GuardedMatcher
from interlock.constraints.schema.guards.plan import NO_ROOM, GuardPlan, Room
from interlock.constraints.schema.guards.turn import GuardedTurn, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.load import describe

Engine = tuple[Tokenizer, LLGuidanceProvider, GuardVocabulary]


def record(*, closed: bool = True, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    closing = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": list(required), **closing}


def unique(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, **more}


TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
WORDS = ["ant", "anteater", "bee", *(f"word {number}" for number in range(70))]
"""More than a rule has bits for."""


def room(schema: Any, *, order: str = "any", is_array: bool) -> Room:
    options = SchemaOptions(guards=True, open_objects=True, property_order=order)
    plan = compile_schema(schema, options, json_syntax(",", ":", flexible=False), "j").guards
    assert plan is not None
    nodes = plan.root if is_array else plan.item(plan.root, 0)
    return plan.room(nodes, is_array=is_array)


_MANY = 1 << 60
TEXTS = Room(fresh=True, items=_MANY, strings=True, text=True)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (unique(TEXT), TEXTS),
        (unique({"type": "string", "minLength": 3}), TEXTS),
        (unique({"type": "string", "maxLength": 90}, maxItems=4), Room(fresh=True, items=4, strings=True)),
        (unique({"type": "string", "maxLength": 1}), NO_ROOM),
        (unique({"type": "string", "pattern": "^x[0-9]{30}$"}), Room(fresh=True, items=_MANY, strings=True)),
        (unique({"type": "string", "pattern": "^x[0-9]{3}$"}), NO_ROOM),
        (unique({"type": "number"}), Room(fresh=True, items=_MANY)),
        (unique({"type": "integer", "minimum": 0, "maximum": 9_000}), NO_ROOM),
        (unique(record(a=TEXT, b=FLAG)), Room(fresh=True, items=_MANY, members=True)),
        (unique(record(a=FLAG, b=FLAG)), NO_ROOM),
        (unique({"type": "array", "items": TEXT, "maxItems": 2}), Room(fresh=True, items=_MANY)),
        (unique({"type": "array", "items": FLAG, "maxItems": 2}), NO_ROOM),
        (unique(TEXT, contains={"const": "x"}), NO_ROOM),
        (unique(TEXT, prefixItems=[FLAG]), NO_ROOM),
        (unique({"enum": WORDS}), Room(domain=tuple(sorted(json.dumps(word).encode() for word in WORDS)))),
        (unique({"enum": [*WORDS, 1]}), NO_ROOM),
    ],
    ids=lambda item: json.dumps(item) if isinstance(item, dict) else "",
)
def test_the_plan_tells_of_arrays_what_is_left_for_new_items(schema: Any, expected: Room) -> None:
    assert room(schema, is_array=True) == expected


@pytest.mark.parametrize(
    ("items", "order", "expected"),
    [
        (record(a=TEXT, b=FLAG, c={"type": "integer"}), "any", Room(spare=frozenset("ac"))),
        (record(a=TEXT, b=FLAG, c={"type": "integer"}), "declared", Room(spare=frozenset("c"))),
        (record(a=TEXT, b=FLAG), "declared", NO_ROOM),
        (record(a=FLAG, closed=False), "any", Room(keys=True)),
        (record(a={"type": "string", "maxLength": 1}), "any", NO_ROOM),
        (record(a=record(b=TEXT)), "any", Room(spare=frozenset("a"))),
        ({**record(a=TEXT, b=TEXT), "maxProperties": 1}, "any", NO_ROOM),
        ({**record(a=TEXT, b=TEXT, c=TEXT), "dependentRequired": {"a": ["b"]}}, "any", Room(spare=frozenset("c"))),
        ({"anyOf": [record(a=TEXT, b=TEXT), record(b=TEXT, c=FLAG)]}, "any", Room(spare=frozenset("b"))),
        ({"anyOf": [record(a=TEXT), {"const": {"a": "x"}}, {"const": {"d": 1}}]}, "any", NO_ROOM),
        (
            {"type": "object", "patternProperties": {"^[a-q]{2}$": FLAG}, "additionalProperties": False, "properties": {"z": TEXT}},
            "declared",
            NO_ROOM,
        ),
    ],
    ids=lambda item: json.dumps(item) if isinstance(item, dict) else "",
)  # fmt: skip
def test_the_plan_tells_of_objects_which_keys_may_still_come(items: Any, order: str, expected: Room) -> None:
    assert room(unique(items), order=order, is_array=False) == expected


@pytest.fixture(scope="module")
def engine(demo_model: Path) -> Engine:
    tokenizer = describe(demo_model).tokenizer
    return tokenizer, LLGuidanceProvider(tokenizer), GuardVocabulary(tokenizer.vocabulary)


def without_room(plan: GuardPlan) -> GuardPlan:
    return replace(plan, nodes=tuple(replace(node, arrays=NO_ROOM, objects=NO_ROOM) for node in plan.nodes))


def matchers(engine: Engine, schema: Any) -> tuple[GuardedMatcher, GuardedMatcher]:
    """One that uses what the plan tells, and one that does not."""
    _, provider, vocabulary = engine
    options = SchemaOptions(guards=True, property_order="any")
    compiled = compile_schema(schema, options, json_syntax(",", ":", flexible=False), "j")
    assert compiled.problems == ()
    assert compiled.guards is not None
    grammar = provider.compile(f"start: {compiled.start}\n{compiled.lark}")
    with_room, bare = (
        GuardedGrammar(grammar, GuardedTurn(Value(0), (plan,)), vocabulary).matcher()
        for plan in (compiled.guards, without_room(compiled.guards))
    )
    return with_room, bare


def mask(matcher: GuardedMatcher, num_words: int) -> list[int]:
    row = np.zeros(num_words, dtype=np.int32)
    try:
        matcher.fill(row)
    except MatcherError:
        return []
    return bitmask.allowed_ids(row)


PEOPLE = [
    {"name": "Ann", "old": True},
    {"name": "Ann", "old": False},
    {"old": True, "name": "Anne"},
    {"name": "Ann", "old": True},
]
LINES = [{"lines": ["a", "b"]}, {"lines": ["a"], "town": "x"}, {"lines": ["a", "b", "a"]}]
DOCUMENTS: list[tuple[Any, Any]] = [
    (unique(TEXT), ["a", "ab", "a, b", 'a"b', "\u00e9", "", "a"]),
    (unique({"type": "string", "maxLength": 60}), ["a", "ab", "a,", "b", "ab"]),
    (unique({"anyOf": [TEXT, {"type": "number"}]}), ["1", 1, 10, "10", 1.5, "1.5", 1.0]),
    (unique({"type": "number"}), [1, 10, 100, 0, 0.5, 10]),
    (unique({"type": "integer"}), [0, 1, -1, 12, 1]),
    (unique(record(name=TEXT, old=FLAG)), PEOPLE),
    (unique(record(name=TEXT, old=FLAG, closed=False)), PEOPLE),
    (unique(record(name={"enum": ["Ann", "Anne"]}, old=FLAG)), PEOPLE),
    (unique(record(lines=unique(TEXT, maxItems=3), town=TEXT)), LINES),
    (unique(record(lines=unique(TEXT, maxItems=3), town=FLAG)), LINES[:1] * 2),
    (unique(unique({}, minItems=2, maxItems=2)), [[0, 1], [0, 2], [1, 0], ["0", 1], [{"a": []}, "}"], [0, 1]]),
    (unique(unique(TEXT)), [["a", "b"], ["b", "a"], ["a"], [], ["a", "b"]]),
    (unique({"type": "array", "items": TEXT, "maxItems": 2}), [["a", "a"], ["a"], ["a", "b"], ["a"]]),
    (unique({"enum": WORDS}), ["bee", "anteater", "word 1", "word 12", "ant", "bee"]),
    (unique({"enum": WORDS}, minItems=70), ["bee", "anteater", "word 1", "word 12", "ant", "bee"]),
    (unique({"enum": WORDS}), WORDS),
    (record(a=unique(record(b=record(c=FLAG, d=TEXT)))), {"a": [{"b": {"c": True}}, {"b": {"d": "x"}}, {"b": {"c": True}}]}),
    ({"anyOf": [unique(TEXT), unique(FLAG, maxItems=2)]}, ["a", "b", "a"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "document"), DOCUMENTS, ids=lambda item: json.dumps(item)[:60])
def test_masks_are_those_of_a_search(schema: Any, document: Any, engine: Engine) -> None:
    tokenizer, _, vocabulary = engine
    with_room, bare = matchers(engine, schema)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    for token_id in tokenizer.encode(text):
        allowed = mask(bare, vocabulary.num_words)
        assert mask(with_room, vocabulary.num_words) == allowed
        if token_id not in allowed:
            break
        bare.accept(token_id)
        with_room.accept(token_id)
    assert with_room.num_vetoed == bare.num_vetoed


def test_every_document_of_the_table_ends_at_a_repetition_or_whole(engine: Engine) -> None:
    """Else the comparison of masks would have looked at little."""
    tokenizer, _, vocabulary = engine
    whole = 0
    for schema, document in DOCUMENTS:
        matcher, _ = matchers(engine, schema)
        tokens = tokenizer.encode(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
        taken = 0
        while taken < len(tokens) and tokens[taken] in mask(matcher, vocabulary.num_words):
            matcher.accept(tokens[taken])
            taken += 1
        assert taken >= len(tokens) // 3, document
        whole += taken == len(tokens) and matcher.is_accepting
        assert taken == len(tokens) or matcher.num_vetoed
    assert whole in range(1, len(DOCUMENTS))
