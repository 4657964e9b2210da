"""No key comes twice where undeclared ones may come, however they are spelt and cut into tokens."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.guards.matcher import GuardedGrammar, GuardedMatcher
from interlock.constraints.schema.guards.plan import EVERY_KEY_ONCE
from interlock.constraints.schema.guards.scan import RepetitionError
from interlock.constraints.schema.guards.turn import GuardedTurn, InValue, LostError, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe

Engine = tuple[Tokenizer, LLGuidanceProvider, GuardVocabulary]

ANY: dict[str, Any] = {}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
UNIQUE = {"type": "array", "uniqueItems": True, "items": MAP}


def engine_of(tokenizer: Tokenizer) -> Engine:
    return tokenizer, LLGuidanceProvider(tokenizer), GuardVocabulary(tokenizer.vocabulary)


@pytest.fixture(scope="module")
def bytewise() -> Engine:
    return engine_of(byte_tokenizer())


@pytest.fixture(scope="module")
def subwords(demo_model: Path) -> Engine:
    return engine_of(describe(demo_model).tokenizer)


def matcher_of(engine: Engine, schema: Any, **options: Any) -> GuardedMatcher:
    _, provider, vocabulary = engine
    syntax = json_syntax(",", ":", flexible=False)
    compiled = compile_schema(schema, SchemaOptions(guards=True, **options), syntax, "j")
    assert compiled.problems == ()
    assert compiled.guards is not None
    grammar = provider.compile(f"start: {compiled.start}\n{compiled.lark}")
    return GuardedGrammar(grammar, GuardedTurn(Value(0), (compiled.guards,)), vocabulary).matcher()


def refused_at(engine: Engine, schema: Any, text: str, **options: Any) -> int | None:
    """Where a byte of ``text`` is missing in its mask."""
    matcher = matcher_of(engine, schema, **options)
    row = np.zeros(engine[2].num_words, dtype=np.int32)
    for at, byte in enumerate(text.encode()):
        matcher.fill(row)
        is_allowed = bitmask.is_allowed(row, byte)
        assert not is_allowed or matcher.validate([byte]) == 1, "masks and single tokens are judged alike"
        if not is_allowed:
            return at
        matcher.accept(byte)
    return None


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (MAP, '{"a":1,"b":2}'),
        (MAP, '{"a":1,"a¦":2}'),
        (MAP, '{"":1,"¦":2}'),
        (MAP, '{"ab":1,"a":2}'),
        (MAP, '{"a":1,"ab":2}'),
        (MAP, '{"é":1,"\\u00e9¦":2}'),
        (MAP, '{"\\u00e9":1,"é¦":2}'),
        (MAP, '{"\\ud83d\\ude00":1,"😀¦":2}'),
        (MAP, '{"\\"":1,"\\"¦":2}'),
        (MAP, '{"\\"":1,"\\\\":2}'),
        (ANY, '{"a":{"a":{"a":1}},"b":{"a":2}}'),
        (ANY, '{"a":{"b":1,"b¦":2}}'),
        (ANY, '{"a":{"b":1},"a¦":2}'),
        (ANY, '[{"a":1},{"a":2}]'),
        (ANY, '[{"a":"a\\":1,"},["a","a"],{"b":"b","b¦":1}]'),
        (UNIQUE, '[{"a":1,"b":1},{"a":1}]'),
        (UNIQUE, '[{"a":1,"a¦":2}]'),
    ],
)
def test_the_byte_that_completes_a_key_again_is_not_allowed(bytewise: Engine, schema: Any, text: str) -> None:
    """It stands behind the bar."""
    before, bar, behind = text.partition("¦")
    assert refused_at(bytewise, schema, before + behind) == (len(before.encode()) if bar else None)


@pytest.mark.parametrize("order", ["any", "declared"])
def test_undeclared_keys_beside_declared_ones(bytewise: Engine, order: str) -> None:
    schema = {"properties": {"a": {}}, "additionalProperties": {"type": "object"}}
    options = {"open_objects": True, "property_order": order}
    assert refused_at(bytewise, schema, '{"a":1,"x":{},"y":{"x":1}}', **options) is None
    assert refused_at(bytewise, schema, '{"a":1,"x":{},"x', **options) is None
    assert refused_at(bytewise, schema, '{"a":1,"x":{},"x"', **options) == 16


def test_only_objects_with_undeclared_keys_are_watched() -> None:
    def guards(schema: Any, **options: Any) -> Any:
        return compile_schema(
            schema, SchemaOptions(guards=True, **options), json_syntax(",", ":", flexible=False), "j"
        ).guards

    closed = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    assert guards({"type": "object", **closed}) is None
    assert guards({"type": "object", **closed}, open_objects=True) == EVERY_KEY_ONCE
    assert (
        guards(
            {"type": "object", "patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": False}
        )
        is None
    )
    assert guards({"type": ["string", "number"]}) is None
    assert guards(MAP) == EVERY_KEY_ONCE


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("^[A-Z]{3}$", '{"EUR":1,"EU¦R'),
        ("^[A-Z]{3}$", '{"EUR":1,"USD":1,"EUS":1,"US¦D'),
        ("^(foo|x-.*)$", '{"foo":1,"¦f'),
        ("^(foo|x-.*)$", '{"x-foo":1,"foo":2,"x-":3,"x-foo¦"'),
    ],
)
def test_no_way_is_taken_on_which_no_new_key_is_left(bytewise: Engine, keys: str, text: str) -> None:
    schema = {**MAP, "propertyNames": {"pattern": keys}}
    before, _, behind = text.partition("¦")
    found = refused_at(bytewise, schema, before + behind, property_order="any")
    assert found == len(before.encode())


def test_a_relative_of_the_guard_is_not_asked_for_where_there_is_none() -> None:
    options = SchemaOptions(guards=False)
    compiled = compile_schema(MAP, options, json_syntax(",", ":", flexible=False), "j")
    assert compiled.guards is None
    assert compiled.problems == ()


def test_it_goes_back_with_its_matcher(bytewise: Engine) -> None:
    matcher = matcher_of(bytewise, MAP)
    row = np.zeros(bytewise[2].num_words, dtype=np.int32)

    def allows(code: str) -> bool:
        matcher.fill(row)
        return bitmask.is_allowed(row, ord(code))

    for byte in b'{"a":1,"':
        matcher.accept(byte)
    for byte in b'b":2,"b':
        matcher.accept(byte)
    assert not allows('"')
    matcher.rollback(7)
    for byte in b"b":
        matcher.accept(byte)
    assert allows('"')
    matcher.rollback(1)
    matcher.accept(ord("a"))
    assert not allows('"')
    assert allows("b")
    with pytest.raises(MatcherError, match="repeats"):
        matcher.accept(ord('"'))


def test_drafts_end_in_front_of_a_key_that_comes_again(bytewise: Engine) -> None:
    matcher = matcher_of(bytewise, MAP)
    for byte in b'{"key":1,':
        matcher.accept(byte)
    draft = list(b'"key":2')
    rows = np.zeros((len(draft) + 1, bytewise[2].num_words), dtype=np.int32)
    plan = matcher.plan(draft, rows)
    assert plan.num_valid == 4
    assert not bitmask.is_allowed(plan.rows[4], ord('"'))
    assert bitmask.is_allowed(plan.rows[4], ord("s"))
    assert matcher.plan(list(b'"kex":2'), rows).num_valid == 7


KEYS = [
    "",
    ",",
    "a",
    "id",
    "name",
    "names",
    " ",
    '"',
    "\\",
    '\\"',
    "é",
    "naïve",
    "\n",
    "日本",
    "😀",
    "a b",
    ":",
    "x" * 40,
    "0",
]


def draw(chooser: random.Random, depth: int = 0) -> Any:
    kind = chooser.random()
    if depth < 3 and (kind < 0.5 or not depth):
        return {key: draw(chooser, depth + 1) for key in chooser.sample(KEYS, chooser.randrange(5))}
    if depth < 3 and kind < 0.65:
        return [draw(chooser, depth + 1) for _ in range(chooser.randrange(3))]
    return chooser.choice([1, True, None, "", "a", ",", '","a":', "id"])


@pytest.mark.parametrize("seed", range(6))
def test_masks_leave_out_what_would_be_refused_and_nothing_else(subwords: Engine, seed: int) -> None:
    """Behind the first tokens of a document, each token that the grammar allows is followed."""
    tokenizer, _, vocabulary = subwords
    chooser = random.Random(seed)
    text = json.dumps(draw(chooser), separators=(",", ":"), ensure_ascii=bool(seed % 2))
    matcher = matcher_of(subwords, ANY)
    row, bare = (np.zeros(vocabulary.num_words, dtype=np.int32) for _ in range(2))
    for token_id in [*tokenizer.encode(text)[:16], None]:
        matcher.fill(row)
        matcher.inner.fill(bare)
        allowed = set(bitmask.allowed_ids(row))
        repeating = set()
        for one in bitmask.allowed_ids(bare):
            try:
                matcher.after(one)
            except RepetitionError:
                repeating.add(one)
            except LostError:
                continue
        assert allowed == set(bitmask.allowed_ids(bare)) - repeating
        if token_id is not None:
            assert token_id in allowed
            matcher.accept(token_id)


@pytest.mark.parametrize("seed", range(8))
def test_walks_repeat_no_key(subwords: Engine, seed: int) -> None:
    """A stubborn model: of the keys that it begins, most have come before."""
    _, _, vocabulary = subwords
    chooser = random.Random(seed)
    matcher, out = matcher_of(subwords, MAP), b""
    row = np.zeros(vocabulary.num_words, dtype=np.int32)
    liked = [vocabulary.ids[one] for one in (b'"', b"a", b"b", b'":', b"1", b",", b',"', b'","', b'"a')
             if one in vocabulary.ids]  # fmt: skip
    while len(out) < 200:
        matcher.fill(row)
        pool = [one for one in liked if bitmask.is_allowed(row, one)] or [
            one for one in bitmask.allowed_ids(row) if b"}" not in vocabulary.tokens[one]
        ]
        token_id = chooser.choice(pool)
        matcher.accept(token_id)
        out += vocabulary.tokens[token_id]
    keys = re.findall(rb'[{,]"((?:[^"\\]|\\.)*)":', out)
    assert len(keys) == len(set(keys)) > 5


def test_long_strings_are_not_kept_for_every_token(bytewise: Engine) -> None:
    matcher = matcher_of(bytewise, {"type": "object"})
    for byte in b'{"a":"' + b"x" * 2_000:
        matcher.accept(byte)
    kept = [one.state.text for one in matcher.readings if isinstance(one, InValue)]
    assert kept == [b""]
