"""Guards over a real vocabulary: one token may end an item, begin the next one and end arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.guards.matcher import GuardedGrammar
from interlock.constraints.schema.guards.turn import GuardedTurn, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.load import describe

Engine = tuple[Tokenizer, LLGuidanceProvider, GuardVocabulary]

FLAT = {"type": "array", "uniqueItems": True, "items": {"type": "string"}}
NESTED = {"type": "array", "uniqueItems": True, "items": FLAT}


@pytest.fixture(scope="module")
def engine(demo_model: Path) -> Engine:
    tokenizer = describe(demo_model).tokenizer
    return tokenizer, LLGuidanceProvider(tokenizer), GuardVocabulary(tokenizer.vocabulary)


def _repeats(text: str) -> bool | None:
    """Whether items that ``text`` has finished are equal; ``None`` where closing brackets do not tell."""
    for ending in ("", "]", "]]"):
        try:
            value = json.loads(text + ending)
        except ValueError:
            continue
        arrays = [value, *(item for item in value if isinstance(item, list))]
        if ending == "]]":  # the last inner array may go on
            arrays[0] = value[:-1]
        return any(len(set(map(json.dumps, items))) < len(items) for items in arrays)
    return None


@pytest.mark.parametrize(
    ("schema", "begun"),
    [
        (FLAT, '["a","b","'),
        (FLAT, '["a","b","a'),
        (NESTED, '[["a","b","'),
        (NESTED, '[["a","b"],["a","b'),
        (NESTED, '[["a"],["b"],["'),
        (NESTED, '[["a","b"],["b","a","'),
    ],
)
def test_no_token_that_ends_an_item_repeats_one_and_none_that_does_not_is_missing(
    schema: Any, begun: str, engine: Engine
) -> None:
    tokenizer, provider, vocabulary = engine
    compiled = compile_schema(schema, SchemaOptions(guards=True), json_syntax(",", ":", flexible=False), "j")
    assert compiled.guards is not None
    plain = provider.compile(f"start: {compiled.start}\n{compiled.lark}")
    matcher = GuardedGrammar(plain, GuardedTurn(Value(0), (compiled.guards,)), vocabulary).matcher()
    for token_id in tokenizer.encode(begun):
        matcher.accept(token_id)
    rows = np.zeros((2, vocabulary.num_words), dtype=np.int32)
    matcher.fill(rows[0])
    matcher.inner.fill(rows[1])
    offered = set(bitmask.allowed_ids(rows[0]))
    looked_at = 0
    for token_id in bitmask.allowed_ids(rows[1]):
        spelling = tokenizer.vocabulary.tokens[token_id]
        if b'"' not in spelling:
            continue
        repeats = _repeats(begun + spelling.decode())
        if repeats is not None:
            looked_at += 1
            assert (token_id in offered) != repeats, spelling
        if token_id in offered:
            matcher.accept(token_id)
            matcher.rollback(1)
    assert looked_at
