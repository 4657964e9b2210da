from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InterlockError
from interlock.tokenization.gguf import gguf_tokenizer
from interlock.tokenization.load import describe
from interlock.tokenization.pre_tokenizers import PRE_TOKENIZERS
from interlock.tokenization.token_bytes import BYTE_OF_CHARACTER


def byte_level_metadata(pre: str | None = "gpt-2", **more: Any) -> dict[str, Any]:
    """256 bytes, three merges, then <|im_end|> (256+3) control and <think> user-defined."""
    tokens = [*BYTE_OF_CHARACTER, "he", "ll", "hell", "<|im_end|>", "<think>", "[PAD1]"]
    kinds = [1] * (len(tokens) - 3) + [3, 4, 5]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": ["h e", "l l", "he ll"],
        "tokenizer.ggml.bos_token_id": 259,
        "tokenizer.ggml.eos_token_id": 259,
    }
    return metadata | ({} if pre is None else {"tokenizer.ggml.pre": pre}) | more


def spelled(metadata: Mapping[str, Any], text: str, *, special: bool = False) -> list[bytes]:
    tokenizer = gguf_tokenizer(metadata)
    ids = tokenizer.encode(text) if special else tokenizer.encode_text(text)
    return [tokenizer.vocabulary.tokens[token_id] for token_id in ids]


def test_byte_level_bpe_merges_and_splits_at_special_tokens() -> None:
    metadata = byte_level_metadata()
    assert spelled(metadata, "hello", special=True) == [b"hell", b"o"]
    assert spelled(metadata, "he<|im_end|>", special=True) == [b"he", b"<|im_end|>"]
    assert spelled(metadata, "he<think>", special=True) == [b"he", b"<think>"]
    assert b"<think>" not in spelled(metadata, "he<think>")
    assert b"".join(spelled(metadata, "he<think>ö\x00")) == "he<think>ö\x00".encode()


def test_the_vocabulary_tells_control_user_defined_and_unused_tokens_apart() -> None:
    vocabulary = gguf_tokenizer(byte_level_metadata()).vocabulary
    assert vocabulary.special_ids == {259, 260}
    assert vocabulary.control_ids == {259}
    assert vocabulary.stop_ids == (259,)
    assert vocabulary.tokens[261] == b""
    assert vocabulary.bos_id is None


def test_a_declared_end_of_turn_is_special_whatever_its_type() -> None:
    tokenizer = gguf_tokenizer(byte_level_metadata(**{"tokenizer.ggml.eot_token_id": 258}))
    assert tokenizer.vocabulary.stop_ids == (258, 259)
    assert 258 in tokenizer.vocabulary.control_ids
    assert tokenizer.encode("hell") == [258]
    assert tokenizer.encode_text("hell") == [256, 257]


@pytest.mark.parametrize(
    ("pre", "flag", "bos_id"),
    [("gpt-2", None, None), ("gpt-2", True, 259), ("llama-bpe", None, 259), ("llama-bpe", False, None)],
)
def test_bos_follows_the_file_and_else_the_pre_tokenizer(
    pre: str, flag: bool | None, bos_id: int | None
) -> None:
    more = {} if flag is None else {"tokenizer.ggml.add_bos_token": flag}
    assert gguf_tokenizer(byte_level_metadata(pre, **more)).vocabulary.bos_id == bos_id


@pytest.mark.parametrize("pre", sorted(PRE_TOKENIZERS))
def test_every_known_pre_tokenizer_keeps_every_byte(pre: str) -> None:
    text = "Hello's 12345 wörld!\r\n\t  中文、カナ한글 ＡＢ MacRoman iPhone x=1;  "
    assert b"".join(spelled(byte_level_metadata(pre), text)) == text.encode()


@pytest.mark.parametrize("pre", ["llama-bpe", "tekken", "seed-coder"])
def test_a_word_that_is_a_special_token_as_a_whole_stays_text(pre: str) -> None:
    metadata = byte_level_metadata(pre)
    metadata["tokenizer.ggml.tokens"] = [*metadata["tokenizer.ggml.tokens"][:-1], "end"]
    metadata["tokenizer.ggml.token_type"] = [*metadata["tokenizer.ggml.token_type"][:-1], 3]
    assert spelled(metadata, "end") == [b"e", b"n", b"d"]
    assert spelled(metadata, "end", special=True) == [b"end"]


def test_sentencepiece_merges_by_score_with_byte_fallback(sentencepiece_metadata: dict[str, Any]) -> None:
    assert spelled(sentencepiece_metadata, "hello world", special=True) == [b" hello", b" world"]
    assert spelled(sentencepiece_metadata, "é", special=True) == [b" ", b"\xc3", b"\xa9"]
    plain = sentencepiece_metadata | {"tokenizer.ggml.add_space_prefix": False}
    assert spelled(plain, "hello", special=True) == [b"hell", b"o"]


def test_plain_text_gets_no_space_in_front(sentencepiece_metadata: dict[str, Any]) -> None:
    assert spelled(sentencepiece_metadata, "hello world") == [b"hell", b"o", b" world"]


def test_sentencepiece_plain_text_never_gives_a_control_token(sentencepiece_metadata: dict[str, Any]) -> None:
    plain = sentencepiece_metadata | {"tokenizer.ggml.add_space_prefix": False}
    assert spelled(plain, "<s>") == [b"<s", b">"]
    assert spelled(plain, "<s>", special=True) == [b"<s>"]
    assert gguf_tokenizer(plain).encode_text("<s>")[0] != 1


def test_user_defined_white_space_is_text(sentencepiece_metadata: dict[str, Any]) -> None:
    tokenizer = gguf_tokenizer(sentencepiece_metadata | {"tokenizer.ggml.add_space_prefix": False})
    spaces = sentencepiece_metadata["tokenizer.ggml.tokens"].index("  ")
    assert spaces not in tokenizer.vocabulary.special_ids
    assert tokenizer.encode_text("o  o")[1] == spaces
    assert tokenizer.special_tokens.keys() == {"<unk>", "<s>", "</s>", "<|im_start|>", "<think>"}


def test_user_defined_tags_of_html_are_text(sentencepiece_metadata: dict[str, Any]) -> None:
    tokens = list(sentencepiece_metadata["tokenizer.ggml.tokens"])
    think = tokens.index("<think>")
    tokens[think] = "<table>"
    tokenizer = gguf_tokenizer(sentencepiece_metadata | {"tokenizer.ggml.tokens": tokens})
    assert think not in tokenizer.vocabulary.special_ids
    assert tokenizer.encode_text("<table>")[-1] == think
    as_bos = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.bos_token_id": think}
    assert think in gguf_tokenizer(sentencepiece_metadata | as_bos).vocabulary.special_ids


REFUSED = [
    ({"tokenizer.ggml.model": "bert"}, "kind 'bert'"),
    ({"tokenizer.ggml.model": None}, "kind None"),
    ({"tokenizer.ggml.pre": "made-up"}, "unknown pre-tokenizer 'made-up'"),
    ({"tokenizer.ggml.pre": None}, "does not name its pre-tokenizer"),
    ({"tokenizer.ggml.tokens": None}, "no list of strings tokenizer.ggml.tokens"),
    ({"tokenizer.ggml.merges": None}, "no list of strings tokenizer.ggml.merges"),
    ({"tokenizer.ggml.merges": ["nospace"]}, "malformed merge 'nospace'"),
    ({"tokenizer.ggml.merges": [""]}, "malformed merge ''"),
    ({"tokenizer.ggml.merges": ["h zz"]}, "merges do not fit"),
    ({"tokenizer.ggml.tokens": [1, 2]}, "no list of strings tokenizer.ggml.tokens"),
    ({"tokenizer.ggml.token_type": [1, 1]}, "262 tokens but 2 values"),
    ({"tokenizer.ggml.token_type": "normal"}, "no list of numbers tokenizer.ggml.token_type"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_is_unknown_or_contradictory_is_refused(change: dict[str, Any], message: str) -> None:
    metadata = {key: value for key, value in (byte_level_metadata() | change).items() if value is not None}
    with pytest.raises(InterlockError, match=message) as caught:
        gguf_tokenizer(metadata)
    assert caught.value.code == "invalid_value"


def test_a_vocabulary_without_byte_tokens_is_refused(sentencepiece_metadata: dict[str, Any]) -> None:
    kinds = [1 if kind == 6 else kind for kind in sentencepiece_metadata["tokenizer.ggml.token_type"]]
    with pytest.raises(InterlockError, match="lacks the byte tokens <0x00>"):
        gguf_tokenizer(sentencepiece_metadata | {"tokenizer.ggml.token_type": kinds})


def test_describe_reads_what_templates_and_limits_need(
    gguf_file: Callable[[Mapping[str, Any]], Path], sentencepiece_metadata: dict[str, Any]
) -> None:
    description = describe(gguf_file(sentencepiece_metadata | {"tokenizer.chat_template": "{{ messages }}"}))
    assert description.architecture == "llama"
    assert description.name == "small"
    assert description.chat_template == "{{ messages }}"
    assert description.context_tokens == 128
    assert (description.bos_token, description.eos_token) == ("<s>", "</s>")
    assert description.tokenizer.vocabulary.bos_id == 1
    assert description.tokenizer.vocabulary.stop_ids == (2,)
