"""uniqueItems over open domains: no wrong value, every right one within reach, and it all rolls back."""

from __future__ import annotations

import itertools
import json
import random

import jsonschema
import numpy as np
import pytest

from interlock.constraints.providers.base import MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.guards.matcher import GuardedMatcher
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.guards.reading import feed
from interlock.constraints.schema.guards.scan import RepetitionError, State
from interlock.constraints.schema.guards.turn import GuardedTurn, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.tokenization.byte_tokenizer import byte_tokenizer

PRODUCT = {
    "type": "array",
    "uniqueItems": True,
    "items": {
        "type": "object",
        "properties": {"x": {"enum": [1, 2]}, "y": {"enum": ["a", "b"]}},
        "required": ["x", "y"],
        "additionalProperties": False,
    },
}
SCHEMAS = [
    {"type": "array", "uniqueItems": True, "items": {"type": "string", "maxLength": 2}, "minItems": 1},
    {"type": "array", "uniqueItems": True, "items": {"type": "integer", "minimum": 0, "maximum": 200}},
    {"type": "array", "uniqueItems": True, "items": {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}}},
    {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}, "b": {"type": "array"}}},
    {"type": "object", "minProperties": 2, "maxProperties": 3},
    PRODUCT,
]  # fmt: skip


@pytest.fixture(scope="module")
def provider():
    tokenizer = byte_tokenizer()
    return LLGuidanceProvider(tokenizer), GuardVocabulary(tokenizer.vocabulary)


@pytest.fixture
def guarded(provider):
    def make(schema) -> GuardedMatcher:
        engine, vocabulary = provider
        compiled = compile_schema(
            schema, SchemaOptions(guards=True), json_syntax(",", ":", flexible=False), "j"
        )
        assert compiled.problems == ()
        assert compiled.guards is not None
        assert GuardPlan.from_json(compiled.guards.to_json()) == compiled.guards
        grammar = engine.compile(f"start: {compiled.start}\n{compiled.lark}")
        turn = GuardedTurn(Value(0), (compiled.guards,))
        return GuardedMatcher(grammar.matcher(), turn, vocabulary, {})

    return make


def _row(provider) -> np.ndarray:
    size = len(provider[1].tokens)
    return np.zeros((size + 31) // 32, dtype=np.int32)


def _accepts(matcher: GuardedMatcher, row: np.ndarray, text: str) -> bool:
    taken, fine = 0, True
    for code in text.encode():
        matcher.fill(row)
        if not row[code >> 5] >> (code & 31) & 1:
            fine = False
            break
        matcher.accept(code)
        taken += 1
    fine = fine and matcher.is_accepting
    matcher.rollback(taken)
    return fine


def test_every_order_of_distinct_objects_is_within_reach(guarded, provider) -> None:
    matcher, row = guarded(PRODUCT), _row(provider)
    objects = [{"x": x, "y": y} for x in (1, 2) for y in ("a", "b")]
    for size in range(5):
        for chosen in itertools.permutations(objects, size):
            assert _accepts(matcher, row, json.dumps(chosen, separators=(",", ":")))
    assert not _accepts(matcher, row, '[{"x":1,"y":"a"},{"x":1,"y":"a"}]')


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_walks_end_in_valid_documents_or_in_an_error(schema, guarded, provider) -> None:
    chooser, row = random.Random(5), _row(provider)
    finished = 0
    for _ in range(25):
        matcher, out = guarded(schema), b""
        try:
            while len(out) < 80:
                matcher.fill(row)
                allowed = [code for code in range(256) if row[code >> 5] >> (code & 31) & 1]
                if matcher.is_accepting and (not allowed or chooser.random() < 0.4):
                    jsonschema.validate(json.loads(out), schema)
                    finished += 1
                    break
                liked = [code for code in allowed if code in b'"]},ab01:'] or allowed
                code = chooser.choice(liked)
                matcher.accept(code)
                out += bytes([code])
        except MatcherError:
            continue  # a dead end: the request ends with this error, not with a wrong value
    assert finished > 5


def test_a_guard_goes_back_with_its_matcher(guarded, provider) -> None:
    matcher, row = guarded(SCHEMAS[0]), _row(provider)
    for code in b'["a","':
        matcher.accept(code)
    twin = matcher.clone()
    for code in b'b"':
        matcher.accept(code)
    matcher.rollback(2)
    for each in (matcher, twin):
        each.accept(ord("a"))
        each.fill(row)
        assert not row[ord('"') >> 5] >> (ord('"') & 31) & 1
        with pytest.raises(MatcherError):
            each.accept(ord('"'))


def test_drafts_stop_at_the_first_repetition(guarded, provider) -> None:
    matcher, row = guarded(SCHEMAS[0]), _row(provider)
    draft = list(b'["a","a"]')
    rows = np.zeros((len(draft) + 1, len(row)), dtype=np.int32)
    plan = matcher.plan(draft, rows)
    assert plan.num_valid == 7
    assert plan.rows.shape[0] == 8
    assert matcher.validate(draft) == 7
    matcher.fill(row)
    assert row[ord("[") >> 5] >> (ord("[") & 31) & 1


def test_only_what_must_differ_is_watched() -> None:
    schema = {
        "properties": {"a": {"type": "array", "uniqueItems": True}, "b": {"type": "array"}},
        "type": "object",
    }
    compiled = compile_schema(schema, SchemaOptions(guards=True), json_syntax(",", ":", flexible=False), "j")
    assert compiled.guards is not None
    feed(compiled.guards, State(), b'{"b":[1,1],"a":[1,2]}')
    with pytest.raises(RepetitionError):
        feed(compiled.guards, State(), b'{"b":[1,1],"a":[1,1]}')
    assert {finding.status for finding in compiled.report.findings if finding.keyword == "uniqueItems"} == {
        "guard"
    }
