"""A whole turn over a real vocabulary: canonical tokens are legal, forced tokens are the canonical ones."""

from __future__ import annotations

import lzma
from pathlib import Path

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
