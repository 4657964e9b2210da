"""Long fixed texts: refused by name above a bound; below it each step looks at a part of them only."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from interlock.compiling.trial import Trial
from interlock.constraints.literals import MAX_LITERAL_CHARS
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.providers.llguidance_limits import MAX_FORCED_BYTES
from interlock.core.constraint import Choice, ConstraintSpec, Grammar, JsonValue, Node, Text
from interlock.core.tokenizer import Tokenizer, Vocabulary
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.hf import hf_tokenizer

LONG = "x" * (MAX_LITERAL_CHARS + 1)
NAMES = [f"k{number}" for number in range(20)]


def value(schema: object) -> JsonValue:
    return JsonValue(json.dumps(schema))


@pytest.mark.parametrize(
    ("node", "limit"),
    [
        (value({"const": LONG}), MAX_LITERAL_CHARS),
        (value({"enum": ["short", LONG]}), MAX_LITERAL_CHARS),
        (value({"const": {"a": [LONG]}}), MAX_LITERAL_CHARS),
        (Text(LONG), MAX_LITERAL_CHARS),
        (Choice(("short", LONG)), MAX_LITERAL_CHARS),
        (
            value(
                {
                    "properties": {name: {"const": LONG[1:]} for name in NAMES},
                    "required": NAMES,
                    "type": "object",
                }
            ),
            MAX_FORCED_BYTES,
        ),
        (Grammar(f'start: "{"x" * (MAX_FORCED_BYTES + 1)}"', "lark"), MAX_FORCED_BYTES),
    ],
)
def test_too_long_a_text_is_refused_with_the_limit(node: Node, limit: int) -> None:
    with pytest.raises(InterlockError, match=f"at most {limit} are supported") as caught:
        Trial({}).run(ConstraintSpec(root=node))

    assert caught.value.entry.status == 400


@pytest.mark.parametrize("node", [value({"const": LONG[1:]}), Text(LONG[1:]), value({"description": LONG})])
def test_texts_up_to_the_limit_and_descriptions_of_any_length_are_taken(node: Node) -> None:
    assert Trial({}).run(ConstraintSpec(root=node)).grammar


class CountingTokenizer:
    """Bytes, and how much text was encoded."""

    def __init__(self) -> None:
        self._tokenizer = byte_tokenizer()
        self.num_chars = 0

    @property
    def vocabulary(self) -> Vocabulary:
        return self._tokenizer.vocabulary

    @property
    def special_tokens(self) -> dict[str, int]:
        return self._tokenizer.special_tokens

    def encode_text(self, text: str) -> list[int]:
        self.num_chars += len(text)
        return self._tokenizer.encode_text(text)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)


def encoded_for(length: int, num_tokens: int) -> int:
    """Characters encoded while the first tokens of a forced text are taken."""
    tokenizer = CountingTokenizer()
    text = "".join(random.Random(0).choices("abcdefgh ", k=length))
    matcher = LLGuidanceProvider(tokenizer).compile(f'start: "{text}"').matcher()
    for _ in range(num_tokens):
        matcher.accept(matcher.forced_tokens()[0])
    return tokenizer.num_chars


def test_a_token_of_a_forced_text_costs_the_same_however_long_the_text_is() -> None:
    assert 0 < encoded_for(16_000, 100) <= encoded_for(1_000, 100)


@pytest.fixture(scope="module")
def tokenizer(shared: Path) -> Tokenizer:
    packed = (shared / "data/tokenizers/qwen3/tokenizer.json.xz").read_bytes()
    return hf_tokenizer(lzma.decompress(packed).decode())


def test_a_long_forced_text_is_spelt_as_the_tokenizer_spells_it(tokenizer: Tokenizer) -> None:
    words = [
        "farm",
        " Perú",
        "\n\n",
        "    ",
        "2024",
        "，東京",
        "!!!",
        " don't",
        "xxxxxxxxxxxx",
        "\t",
        " <b>",
        "🦙",
    ]
    text = "".join(random.Random(1).choices(words, k=900))
    matcher = LLGuidanceProvider(tokenizer).compile(f"start: {json.dumps(text, ensure_ascii=False)}").matcher()
    ids: list[int] = []
    while not matcher.is_terminated:
        ids.append(matcher.forced_tokens()[0])
        matcher.accept(ids[-1])

    assert ids == tokenizer.encode_text(text)
