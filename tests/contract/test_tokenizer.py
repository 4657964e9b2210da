"""Every verb of the tokenizer contract, over every kind of tokenizer that needs no shared data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, pre_tokenizers
from tokenizers.models import BPE

from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.gguf import gguf_tokenizer
from interlock.tokenization.hf import hf_tokenizer
from interlock.tokenization.load import describe
from interlock.tokenization.token_bytes import BYTE_OF_CHARACTER, BYTE_TOKENS

SPECIAL = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")
ALPHABET = list(BYTE_OF_CHARACTER)


def _byte_level_gguf() -> Tokenizer:
    return gguf_tokenizer(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": [*SPECIAL, *ALPHABET, "he", "Ġhe", "im"],
            "tokenizer.ggml.token_type": [3, 3, 4, 4, *[1] * 259],
            "tokenizer.ggml.merges": ["h e", "Ġ he", "i m"],
            "tokenizer.ggml.eos_token_id": 1,
        }
    )


def _sentencepiece_gguf() -> Tokenizer:
    pieces = ["▁", "h", "e", "he", "▁he", "<", "|"]
    return gguf_tokenizer(
        {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": ["<unk>", *SPECIAL, *BYTE_TOKENS, *pieces],
            "tokenizer.ggml.scores": [*[0.0] * 261, *(-float(rank) for rank in range(len(pieces)))],
            "tokenizer.ggml.token_type": [2, 3, 3, 4, 4, *[6] * 256, *[1] * len(pieces)],
            "tokenizer.ggml.add_space_prefix": False,
            "tokenizer.ggml.eos_token_id": 2,
        }
    )


def _hf() -> Tokenizer:
    vocab = {character: token_id for token_id, character in enumerate(ALPHABET)} | {"he": 256}
    tokenizer = RustTokenizer(BPE(vocab=vocab, merges=[("h", "e")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    return hf_tokenizer(tokenizer.to_str())


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "bytes": lambda: byte_tokenizer(SPECIAL),
    "gguf byte-level": _byte_level_gguf,
    "gguf sentencepiece": _sentencepiece_gguf,
    "hf": _hf,
}


@pytest.fixture(scope="module", params=[*KINDS, pytest.param("demo model", marks=pytest.mark.model)])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param in KINDS:
        return KINDS[request.param]()
    demo_model: Path = request.getfixturevalue("demo_model")
    return describe(demo_model).tokenizer


def _texts(tokenizer: Tokenizer) -> st.SearchStrategy[str]:
    """Texts that the vocabulary can spell, with spellings of special tokens and halves of them in between."""
    spelling = st.sampled_from(sorted(tokenizer.special_tokens))
    # SentencePiece has no way to write U+2581; a vocabulary may lack rare bytes, as the demo model's does.
    text = st.text(
        st.characters(exclude_characters="▁", exclude_categories=["Cs", "Cc"], max_codepoint=0x1FFFF)
    )
    return st.lists(st.one_of(text, spelling, spelling.map(lambda whole: whole[1:])), max_size=6).map("".join)


def test_the_vocabulary_is_consistent(tokenizer: Tokenizer) -> None:
    vocabulary = tokenizer.vocabulary
    assert vocabulary.control_ids <= vocabulary.special_ids <= set(range(vocabulary.size))
    assert set(vocabulary.stop_ids) <= vocabulary.special_ids
    assert list(vocabulary.stop_ids) == sorted(set(vocabulary.stop_ids))
    assert {vocabulary.tokens[token_id].decode(): token_id for token_id in vocabulary.special_ids} == (
        tokenizer.special_tokens
    )


def test_each_special_token_is_one_id_and_decodes_to_its_spelling(tokenizer: Tokenizer) -> None:
    for spelling, token_id in tokenizer.special_tokens.items():
        assert tokenizer.encode(spelling) == [token_id]
        assert tokenizer.decode([token_id]) == spelling


def test_plain_text_has_no_special_token_and_keeps_its_bytes(tokenizer: Tokenizer) -> None:
    @settings(max_examples=100, derandomize=True, deadline=None, database=None)
    @given(_texts(tokenizer))
    def check(text: str) -> None:
        ids = tokenizer.encode_text(text)
        assert tokenizer.vocabulary.special_ids.isdisjoint(ids)
        assert b"".join(tokenizer.vocabulary.tokens[token_id] for token_id in ids) == text.encode()
        assert tokenizer.decode(ids) == text

    check()


def test_encoding_with_special_tokens_keeps_the_text(tokenizer: Tokenizer) -> None:
    @settings(max_examples=100, derandomize=True, deadline=None, database=None)
    @given(_texts(tokenizer))
    def check(text: str) -> None:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        found = any(spelling in text for spelling in tokenizer.special_tokens)
        assert found == (not tokenizer.vocabulary.special_ids.isdisjoint(ids))

    check()


def test_a_long_text_is_encoded_like_its_parts(tokenizer: Tokenizer) -> None:
    line = "he im <|im_end|>\n"
    for encode in (tokenizer.encode, tokenizer.encode_text):
        assert encode(line * 400) == encode(line) * 400


def test_a_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    for encode in (tokenizer.encode, tokenizer.encode_text):
        with pytest.raises(InterlockError, match="lone surrogate"):
            encode("a\udc80")


def test_special_tokens_cannot_be_changed_from_outside(tokenizer: Tokenizer) -> None:
    tokenizer.special_tokens.clear()
    assert tokenizer.special_tokens


def test_malformed_bytes_decode_to_the_replacement_character(tokenizer: Tokenizer) -> None:
    half = tokenizer.vocabulary.tokens.index(b"\xc3")
    assert tokenizer.decode([half]) == "\ufffd"
    with pytest.raises(IndexError):
        tokenizer.decode([tokenizer.vocabulary.size])
