"""Guards over small domains: no walk runs into a dead end, whichever tokens it takes."""

from __future__ import annotations

import json
import random
from typing import Any, Literal

import jsonschema
import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.guards.matcher import GuardedGrammar, GuardedMatcher
from interlock.constraints.schema.guards.turn import GuardedTurn, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.tokenization.byte_tokenizer import byte_tokenizer


def record(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def unique(items: Any, size: int) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, "minItems": size, "maxItems": size}


PAIR = record(x={"enum": [1, 2]}, y={"enum": ["a", "b"]})
DOMAINS = {
    "product": unique(PAIR, 4),
    "product that ends in a string": unique(record(y={"enum": ["a", "ab"]}, z={"enum": ["p", "pq", "r"]}), 6),
    "integers": unique(record(n={"type": "integer", "minimum": 7, "maximum": 12}), 6),
    "strings": unique(record(s={"type": "string", "pattern": "^[ab]{1,2}$"}), 6),
    "strings alone": unique({"type": "string", "pattern": "^[ab]{1,2}$"}, 6),
    "strings that differ by position": {
        "type": "array",
        "uniqueItems": True,
        "prefixItems": [{"type": "string", "pattern": "^a[a-z]?$"}, {"type": "string", "pattern": "^[ab]$"}],
        "items": {"type": "string", "pattern": "^[abc]{1,2}$"},
        "minItems": 1,
        "maxItems": 4,
    },
    "nested": unique(unique(PAIR, 1), 4),
    "numbers": unique(record(n={"enum": [1, 1.5, 10, -2]}), 4),
    "nested arrays": unique({"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2}, 6),
    "escapes": unique(record(s={"enum": ["\u00e9", "e\u00e9", "\\"]}), 3),
    "long forced text": unique(record(s={"enum": ["a" + "x" * 40, "b" + "x" * 40]}, t={"const": "y" * 90}), 2),
    "nested in an object": record(a=unique(PAIR, 4), b=unique(record(ok={"type": "boolean"}), 2)),
    "zeros": unique(record(n={"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.25}), 5),
    "scalars behind each other": {**unique({"enum": [True, None, 2]}, 3), "contains": {"const": 2}, "maxContains": 1},
    "an item that a later position needs": {
        "type": "array",
        "uniqueItems": True,
        "prefixItems": [PAIR, record(x={"const": 1}, y={"enum": ["a", "b"]}), {"enum": [None, {"x": 1, "y": "a"}]}],
        "items": record(x={"const": 2}, y={"const": "a"}),
        "minItems": 4,
        "maxItems": 4,
    },
    "a position that must be there for the next one": {
        "type": "array",
        "uniqueItems": True,
        "prefixItems": [{"type": "array", "items": {"type": "boolean"}, "maxItems": 1}, {"const": []}],
        "contains": {"const": "b"},
        "maxItems": 3,
    },
    "alternatives with and without": {
        "anyOf": [
            unique({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 1}, 3),
            {"type": "array", "items": {"enum": [5, 6, 7]}, "minItems": 4, "maxItems": 5},
        ]
    },
    "what contains counts in one spelling": {
        **unique({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5}, {"const": "a"}]}, 3),
        "contains": {"type": "integer", "minimum": 1},
    },
}  # fmt: skip


ANY_ORDER = {
    "pairs in any order": unique(PAIR, 4),
    "triples in any order": unique(
        record(a={"enum": [1, 2]}, b={"enum": ["p", "pq"]}, c={"type": "boolean"}), 8
    ),
}


@pytest.fixture(scope="module")
def engine() -> tuple[LLGuidanceProvider, GuardVocabulary]:
    tokenizer = byte_tokenizer()
    return LLGuidanceProvider(tokenizer), GuardVocabulary(tokenizer.vocabulary)


def guarded(
    engine: tuple[LLGuidanceProvider, GuardVocabulary],
    schema: Any,
    order: Literal["declared", "any"] = "declared",
) -> GuardedGrammar:
    provider, vocabulary = engine
    options = SchemaOptions(guards=True, property_order=order)
    compiled = compile_schema(schema, options, json_syntax(",", ":", flexible=False), "j")
    assert compiled.problems == ()
    assert compiled.guards is not None
    grammar = provider.compile(f"start: {compiled.start}\n{compiled.lark}")
    return GuardedGrammar(grammar, GuardedTurn(Value(0), (compiled.guards,)), vocabulary)


def walk(matcher: GuardedMatcher, chooser: random.Random, *, drafted: bool) -> bytes:
    """A document of random tokens. drafted: masks come from plans over drafts, most of them wrong."""
    rows = np.zeros((4, matcher._vocabulary.num_words), dtype=np.int32)
    out = b""
    while not matcher.is_accepting:
        if drafted:
            draft = list(out[-3:])
            row = matcher.plan(draft, rows).rows[0]
        else:
            row = rows[0]
            matcher.fill(row)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[:256]
        code = chooser.choice([int(number) for number in np.flatnonzero(bits)])
        matcher.accept(code)
        out += bytes([code])
    return out


@pytest.mark.parametrize("drafted", [False, True], ids=["plain", "drafted"])
@pytest.mark.parametrize("name", DOMAINS)
def test_all_of_a_small_domain_is_used_up_without_a_dead_end(name: str, drafted: bool, engine) -> None:
    grammar, chooser = guarded(engine, DOMAINS[name]), random.Random(11)
    for _ in range(4):
        text = walk(grammar.matcher(), chooser, drafted=drafted)
        jsonschema.validate(json.loads(text), DOMAINS[name])


@pytest.mark.parametrize("name", ANY_ORDER)
def test_all_is_used_up_in_any_order_of_keys(name: str, engine) -> None:
    grammar, chooser = guarded(engine, ANY_ORDER[name], "any"), random.Random(12)
    for _ in range(3):
        text = walk(grammar.matcher(), chooser, drafted=False)
        jsonschema.validate(json.loads(text), ANY_ORDER[name])


@pytest.mark.parametrize(
    "schema",
    [
        unique(PAIR, 5),
        unique(unique({"enum": ["a"]}, 1), 2),
        unique({"type": "string", "pattern": "^x[0-2]$"}, 4),
        unique({"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, 8),
        {"type": "array", "uniqueItems": True, "prefixItems": [{"const": {"a": 1}}, {"const": {"a": 1.0}}], "minItems": 2},
    ],
)  # fmt: skip
def test_fewer_different_values_than_items_are_a_contradiction(schema: dict[str, Any]) -> None:
    syntax = json_syntax(",", ":", flexible=False)
    assert compile_schema(schema, SchemaOptions(guards=True), syntax, "j").is_contradiction
    fewer = {**schema, "minItems": schema["minItems"] - 1, "maxItems": schema["minItems"] - 1}
    assert not compile_schema(fewer, SchemaOptions(guards=True), syntax, "j").problems


@pytest.mark.parametrize("items", [{}, {"type": "integer"}])
def test_fewer_different_values_than_contains_asks_for_are_a_contradiction(items: Any) -> None:
    schema = {
        "type": "array",
        "uniqueItems": True,
        "items": items,
        "contains": {"enum": [1, 2]},
        "minContains": 3,
    }
    syntax = json_syntax(",", ":", flexible=False)
    assert compile_schema(schema, SchemaOptions(guards=True), syntax, "j").is_contradiction
    assert not compile_schema({**schema, "minContains": 2}, SchemaOptions(guards=True), syntax, "j").problems


def test_objects_that_are_closed_by_policy_may_be_too_few() -> None:
    schema = unique({"type": "object", "properties": {"a": {"type": "boolean"}}}, 4)
    syntax = json_syntax(",", ":", flexible=False)
    (problem,) = compile_schema(schema, SchemaOptions(guards=True), syntax, "j").problems
    assert problem.keyword == "minItems"
    assert "open_objects" in problem.reason
    assert not compile_schema(schema, SchemaOptions(guards=True, open_objects=True), syntax, "j").problems


def test_a_comma_is_not_offered_behind_the_last_item_of_a_domain(engine) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": PAIR}
    matcher, row = guarded(engine, schema).matcher(), np.zeros(engine[1].num_words, dtype=np.int32)
    items = [{"x": x, "y": y} for x in (1, 2) for y in "ab"]
    for code in json.dumps(items, separators=(",", ":")).encode()[:-1]:
        matcher.accept(code)
    matcher.fill(row)
    assert bitmask.allowed_ids(row) == [ord("]")]
    matcher.rollback(len(json.dumps(items[-1], separators=(",", ":"))) + 1)
    matcher.fill(row)
    assert set(bitmask.allowed_ids(row)) == set(b",]")


def test_more_ways_to_go_on_than_a_word_has_bits_are_used_up(engine) -> None:
    schema = unique(record(s={"type": "string", "pattern": "^[A-Za-z0-9_.:;-]$"}), 67)
    text = walk(guarded(engine, schema).matcher(), random.Random(13), drafted=False)
    jsonschema.validate(json.loads(text), schema)
