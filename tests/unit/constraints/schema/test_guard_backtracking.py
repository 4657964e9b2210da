"""Matchers that go back from dead ends which their guard did not foresee."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.guards import foresight
from interlock.constraints.schema.guards.matcher import GuardedGrammar, GuardedMatcher
from interlock.constraints.schema.guards.turn import GuardedTurn, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()


def grammar(schema: Any) -> GuardedGrammar:
    options, syntax = SchemaOptions(guards=True), json_syntax(",", ":", flexible=False)
    compiled = compile_schema(schema, options, syntax, "j")
    assert compiled.problems == ()
    assert compiled.guards is not None
    native = LLGuidanceProvider(TOKENIZER).compile(f"start: {compiled.start}\n{compiled.lark}")
    turn = GuardedTurn(Value(0), (compiled.guards,))
    return GuardedGrammar(native, turn, GuardVocabulary(TOKENIZER.vocabulary))


def unique(items: Any, size: int) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, "minItems": size, "maxItems": size}


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def walk(matcher: GuardedMatcher, chooser: random.Random) -> tuple[bytes, list[int], set[int]]:
    """A document of random tokens, how far it went back, and all lengths of text that was held."""
    row = np.zeros(-(-TOKENIZER.vocabulary.size // 32), dtype=np.int32)
    out: list[int] = []
    undone: list[int] = []
    held: set[int] = set()
    while not matcher.is_accepting:
        held.add(matcher.num_held)
        try:
            matcher.fill(row)
        except MatcherError:
            most = matcher.num_held
            undone.append(matcher.backtrack(most))
            assert 0 < undone[-1] <= most
            del out[-undone[-1] :]
            assert len(undone) < 200
            continue
        token_id = chooser.choice(bitmask.allowed_ids(row))
        matcher.accept(token_id)
        out.append(token_id)
    assert matcher.num_held == 0
    return bytes(out), undone, held


AT_BOUNDS = {
    "product": unique(record(x={"enum": [1, 2]}, y={"enum": ["a", "b"]}), 4),
    "strings": unique(record(s={"type": "string", "pattern": "^[ab]{2}$"}), 4),
}


@pytest.mark.parametrize("name", AT_BOUNDS)
def test_a_search_at_its_bounds_is_made_good_inside_the_item(name: str, monkeypatch) -> None:
    monkeypatch.setattr(foresight, "MAX_LOOKS", 2)
    made, num_undone, longest = grammar(AT_BOUNDS[name]), 0, 0
    for seed in range(6):
        text, undone, held = walk(made.matcher(), random.Random(seed))
        jsonschema.validate(json.loads(text), AT_BOUNDS[name])
        num_undone += len(undone)
        longest = max(longest, *held)
        assert max(held) <= max(len(json.dumps(item)) for item in json.loads(text)) + 2
    assert longest, "nothing was in doubt"
    assert num_undone, "no dead end"


@pytest.mark.parametrize("name", AT_BOUNDS)
def test_nothing_is_held_where_all_is_foreseen(name: str) -> None:
    text, undone, held = walk(grammar(AT_BOUNDS[name]).matcher(), random.Random(3))
    jsonschema.validate(json.loads(text), AT_BOUNDS[name])
    assert (undone, held) == ([], {0})


LETTER = {"type": "string", "pattern": "^[a-i]$"}
RUNS_OUT = {
    "type": "array",
    "uniqueItems": True,
    "prefixItems": [LETTER, {"enum": ["a", "b"]}, {"enum": ["a", "c"]}],
    "items": False,
    "minItems": 3,
    "contains": {"enum": ["a", "b"]},
    "minContains": 2,
}


def at_dead_end() -> tuple[GuardedMatcher, bytes]:
    """And what was written until then."""
    matcher, row = grammar(RUNS_OUT).matcher(), np.zeros(-(-TOKENIZER.vocabulary.size // 32), dtype=np.int32)
    text = b'["g","a"'
    for token_id in text:
        matcher.accept(token_id)
    for _ in range(9):
        try:
            matcher.fill(row)
        except MatcherError:
            return matcher, text
        (token_id,) = bitmask.allowed_ids(row)
        matcher.accept(token_id)
        text += bytes([token_id])
    raise AssertionError("no dead end")


def test_the_item_in_the_way_is_written_anew_and_another_value_is_all_that_is_left() -> None:
    matcher, text = at_dead_end()
    row = np.zeros(-(-TOKENIZER.vocabulary.size // 32), dtype=np.int32)
    assert matcher.num_held == len(text)
    assert matcher.backtrack(len(text)) == len(text) - len(b'["g",')
    assert matcher.num_held == len(b'["g",')
    matcher.accept(ord('"'))
    matcher.fill(row)
    assert bitmask.allowed_ids(row) == list(b"b")
    for token_id in b'b","a"]':
        assert matcher.validate([token_id]) == 1
        matcher.accept(token_id)
    assert matcher.is_accepting


def test_what_has_been_told_is_not_taken_back() -> None:
    matcher, _ = at_dead_end()
    assert matcher.backtrack(0) == 0
    assert matcher.error is not None


def test_only_a_dead_end_of_the_guard_is_gone_back_from() -> None:
    matcher = grammar(RUNS_OUT).matcher()
    assert matcher.backtrack(9) == 0
    with pytest.raises(MatcherError):
        matcher.accept(ord("x"))
    assert matcher.backtrack(9) == 0
