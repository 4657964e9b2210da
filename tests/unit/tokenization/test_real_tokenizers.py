"""The tokenizers of five model families, as their makers publish them."""

from __future__ import annotations

import lzma
import time
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer

from interlock.core.tokenizer import Tokenizer
from interlock.tokenization.hf import hf_tokenizer

NAMES = ("qwen3", "llama3_1", "gptoss", "deepseek_v4", "gemma3")

CORPUS = (
    "",
    " ",
    "Hello, world! It's 12345.67 o'clock.",
    "  leading and trailing  \n\n\n\t x",
    'def f(x):\n    return {"a": [1, 2]}  # ok\r\n',
    "中文测试，日本語のテキスト、한국어",
    "e\u0301 combining, naïve Ünïcödé, 🙂👩‍👩‍👧‍👦🇩🇪",
    "العربية हिन्दी में ไทย",
    "<table><tr><td>1</td></tr></table> </s> <s>",
    "<|im_start|>user\nhi<|im_end|>\n<think>\n\n</think>\n\n<tool_call>",
    "\x00\x01\x1f\x7f\u00a0\u3000\ufeff",
)


@dataclass(frozen=True)
class Real:
    name: str
    ours: Tokenizer
    theirs: RustTokenizer

    @property
    def byte_level(self) -> bool:
        return self.name != "gemma3"

    def normalized(self, text: str) -> str:
        return unicodedata.normalize("NFC", text) if self.name == "qwen3" else text


@pytest.fixture(scope="module", params=NAMES)
def real(request: pytest.FixtureRequest, shared: Path) -> Real:
    data = lzma.decompress((shared / "data/tokenizers" / request.param / "tokenizer.json.xz").read_bytes())
    text = data.decode()
    theirs = RustTokenizer.from_str(text)
    return Real(request.param, hf_tokenizer(text), theirs)


def test_every_token_has_the_bytes_that_decoding_it_gives(real: Real) -> None:
    vocabulary = real.ours.vocabulary
    assert vocabulary.size == real.theirs.get_vocab_size(with_added_tokens=True)
    for token_id, token in enumerate(vocabulary.tokens):
        decoded = real.theirs.decode([token_id], skip_special_tokens=False)
        assert token.decode("utf-8", "replace") == decoded, token_id


def test_encode_equals_the_published_tokenizer(real: Real) -> None:
    spellings = list(real.ours.special_tokens)
    sample = spellings[:: max(1, len(spellings) // 40)]
    texts = [*CORPUS, *(f"{text} {special}{text}" for text in CORPUS[2:6] for special in sample)]
    texts += ["".join(sample), *(f"{a}\n{b} x" for a, b in zip(sample, reversed(sample), strict=True))]
    for text in texts:
        assert real.ours.encode(text) == real.theirs.encode(text, add_special_tokens=False).ids, text


def test_plain_text_is_encoded_as_the_published_tokenizer_does(real: Real) -> None:
    for text in CORPUS[:8]:
        assert real.ours.encode_text(text) == real.theirs.encode(text, add_special_tokens=False).ids, text


def test_html_is_encoded_as_the_published_tokenizer_does(real: Real) -> None:
    text = '<html><body class="x"><h1>A &amp; B</h1><table><tr><td>1</td></tr></table></body></html>'
    assert real.ours.encode_text(text) == real.theirs.encode(text, add_special_tokens=False).ids


def test_no_special_token_comes_from_its_own_spelling(real: Real) -> None:
    special_ids = real.ours.vocabulary.special_ids
    assert special_ids == set(real.ours.special_tokens.values())
    for spelling in real.ours.special_tokens:
        for text in (spelling, f" {spelling}x", spelling + spelling):
            assert special_ids.isdisjoint(real.ours.encode_text(text)), spelling


def test_plain_text_never_gives_a_special_token_and_loses_no_byte(real: Real) -> None:
    tokens, special_ids = real.ours.vocabulary.tokens, real.ours.vocabulary.special_ids
    spelling = st.sampled_from(sorted(real.ours.special_tokens))
    piece = st.one_of(st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs", "Cn"])), spelling)

    @settings(max_examples=60, derandomize=True, deadline=None, database=None)
    @given(st.lists(piece, max_size=6).map("".join))
    def check(text: str) -> None:
        ids = real.ours.encode_text(text)
        assert special_ids.isdisjoint(ids)
        if "▁" not in text or real.byte_level:
            assert b"".join(tokens[token_id] for token_id in ids) == real.normalized(text).encode()

    check()


STOPS = {
    "qwen3": {"<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"},
    "llama3_1": {"<|eot_id|>", "<|end_of_text|>"},
    "gptoss": {"<|return|>", "<|call|>", "<|endoftext|>"},
    "deepseek_v4": {"<｜end▁of▁sentence｜>"},
    "gemma3": {"<end_of_turn>", "<eos>"},
}


def test_all_ends_of_a_turn_are_known(real: Real) -> None:
    vocabulary = real.ours.vocabulary
    assert {vocabulary.tokens[token_id].decode() for token_id in vocabulary.stop_ids} == STOPS[real.name]


def test_white_space_is_never_special(real: Real) -> None:
    vocabulary = real.ours.vocabulary
    assert not [token_id for token_id in vocabulary.special_ids if not vocabulary.tokens[token_id].strip()]


def test_a_long_text_is_encoded_quickly(real: Real) -> None:
    text = ('The quick brown fox; 12345 <|im_end|> naïve 中文 {"a": [1, 2]}\n' * 2000)[:100_000]
    start = time.process_time()
    assert real.ours.decode(real.ours.encode(text)) == text
    assert time.process_time() - start < 2.0
