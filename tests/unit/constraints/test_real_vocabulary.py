"""A whole turn over a real vocabulary: canonical tokens are legal, forced tokens are the canonical ones."""

from __future__ import annotations

import json
import lzma
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.constraints import bitmask
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import (
    Alternative,
    ConstraintSpec,
    FreeText,
    JsonValue,
    Marker,
    Node,
    Repeat,
    Sequence,
    Text,
)
from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.hf import hf_tokenizer

TURN = (
    "Let me see: 2 < 3, so <tool_cal.\n</think>\n\n"
    '<tool_call>\n{"name": "search", "arguments": {"query": "llama farms, Perú \\"2024\\"", "limit": 12}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "東京"}}\n</tool_call>'
)


@pytest.fixture(scope="module")
def tokenizer(shared: Path) -> Tokenizer:
    packed = (shared / "data/tokenizers/qwen3/tokenizer.json.xz").read_bytes()
    return hf_tokenizer(lzma.decompress(packed).decode())


@pytest.fixture(scope="module")
def provider(tokenizer: Tokenizer) -> LLGuidanceProvider:
    return LLGuidanceProvider(tokenizer)


def call(name: str, schema: str) -> Node:
    opening = Text(f'\n{{"name": "{name}", "arguments": ')
    return Sequence((Marker("<tool_call>"), opening, JsonValue(schema), Text("}\n"), Marker("</tool_call>")))


CALLS = Alternative(
    (
        call(
            "get_weather",
            '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}',
        ),
        call(
            "search",
            '{"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, '
            '"required": ["query", "limit"]}',
        ),
    )
)
SPEC = ConstraintSpec(
    root=Sequence(
        (FreeText(("<tool_call>",)), Marker("</think>"), Text("\n\n"), Repeat(CALLS, 1, None, Text("\n")))
    )
)


def test_a_turn_of_canonical_tokens_is_legal_and_forced_tokens_are_canonical(
    tokenizer: Tokenizer, provider: LLGuidanceProvider
) -> None:
    vocabulary = tokenizer.vocabulary
    matcher = provider.compile(lower(SPEC, tokenizer.special_tokens).grammar).matcher()
    ids = tokenizer.encode(TURN)
    row = bitmask.allocate(1, vocabulary.size)[0]
    num_forced = 0
    for position, token_id in enumerate(ids):
        matcher.fill(row)
        assert bitmask.is_allowed(row, token_id), (position, tokenizer.decode([token_id]))
        assert matcher.is_accepting == any(bitmask.is_allowed(row, stop) for stop in vocabulary.stop_ids)
        forced = matcher.forced_tokens()
        assert forced == ids[position : position + len(forced)]
        num_forced += bool(forced)
        matcher.accept(token_id)
    assert num_forced > len(ids) // 3
    matcher.fill(row)
    assert all(bitmask.is_allowed(row, stop) for stop in vocabulary.stop_ids)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"心情": {"enum": ["开心", "难过"]}}, "required": ["心情"]}, '{"心情": "开心"}'),
        ({"properties": {"城市": {"const": "北京🙂"}, "naïve": {}}, "required": ["城市"]}, '{"城市": "北京🙂", "naïve": "é"}'),
        ({"patternProperties": {"^[а-я]+$": {"pattern": "^[一-龥]+$"}}}, '{"да": "查天气"}'),
    ],
)  # fmt: skip
def test_names_and_values_beyond_ascii_may_be_written_in_their_own_tokens(
    schema: dict[str, object], text: str, tokenizer: Tokenizer, provider: LLGuidanceProvider
) -> None:
    spec = ConstraintSpec(root=JsonValue(json.dumps({"type": "object", **schema})))
    matcher = provider.compile(lower(spec, tokenizer.special_tokens).grammar).matcher()
    ids = tokenizer.encode(text)
    assert matcher.validate(ids) == len(ids), tokenizer.decode(ids[matcher.validate(ids) :])


@pytest.mark.parametrize(
    ("said", "first"),
    [("", b"{"), ('{"n":', b" "), ('{"n": ', b'"'), ('{"n": "J"', b"}"), ('{"n": "I\\', b'"\\bfnrtu')],
)
def test_tokens_begin_only_with_what_may_follow_and_none_leads_out_of_the_document(
    said: str, first: bytes, tokenizer: Tokenizer, provider: LLGuidanceProvider
) -> None:
    """Such as one of a bracket and a line's end, which would leave the answer without an end."""
    spec = ConstraintSpec(
        root=JsonValue('{"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}')
    )
    matcher = provider.compile(lower(spec, tokenizer.special_tokens).grammar).matcher()
    for token_id in tokenizer.encode(said):
        matcher.accept(token_id)
    row = bitmask.allocate(1, tokenizer.vocabulary.size)[0]
    matcher.fill(row)
    spellings = {tokenizer.vocabulary.tokens[token_id] for token_id in bitmask.allowed_ids(row)}
    assert {spelling[0] for spelling in spellings} == set(first)
    if first == b"}":
        assert spellings == {b"}"}


def test_ids_without_text_and_ids_beyond_the_vocabulary_are_never_legal(
    tokenizer: Tokenizer, provider: LLGuidanceProvider
) -> None:
    vocabulary = tokenizer.vocabulary
    row = bitmask.allocate(1, vocabulary.size)[0]
    provider.compile("start: /(?s:.*)/").matcher().fill(row)
    assert not bitmask.unpack(row, row.size * 32)[vocabulary.size :].any()
    allowed = bitmask.unpack(row, vocabulary.size)
    for token_id, token in enumerate(vocabulary.tokens):
        if token_id in vocabulary.stop_ids:
            assert allowed[token_id]
        elif token_id in vocabulary.special_ids or not token:
            assert not allowed[token_id], token


def costs(provider: LLGuidanceProvider, tokenizer: Tokenizer, places: range, **bounds: Any) -> Iterator[float]:
    """Seconds of this thread for a first mask behind so many words of a string."""
    schema = {"type": "object", "properties": {"a": {"type": "string", **bounds}}, "required": ["a"]}
    spec = ConstraintSpec(root=JsonValue(json.dumps(schema)))
    matcher = provider.compile(lower(spec, tokenizer.special_tokens).grammar).matcher()
    for token_id in tokenizer.encode_text('{"a": "'):
        matcher.accept(token_id)
    (word,) = tokenizer.encode_text(" the")
    row = bitmask.allocate(1, tokenizer.vocabulary.size)[0]
    for number in range(places.stop):
        if number in places:
            begin = time.thread_time()
            matcher.fill(row)
            yield time.thread_time() - begin
        matcher.accept(word)


@pytest.mark.parametrize(
    "bounds",
    [
        {"maxLength": 100_000},
        {"minLength": 128},
        {"minLength": 129},
        {"minLength": 200},
        {"minLength": 1_000, "maxLength": 100_000},
    ],
    ids=str,
)
def test_a_mask_in_a_counted_string_costs_what_the_first_one_in_any_string_costs(
    tokenizer: Tokenizer, provider: LLGuidanceProvider, bounds: dict[str, int]
) -> None:
    new = statistics.median(next(costs(provider, tokenizer, range(1))) for _ in range(5))
    counted = list(costs(provider, tokenizer, range(0, 300, 12), **bounds))
    assert statistics.median(counted) < 5 * new
    assert statistics.median(counted[-8:]) < 5 * new
