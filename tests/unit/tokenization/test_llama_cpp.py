"""Our tokenizers of GGUF files against llama.cpp's own, called through its C functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.runners.llama_cpp.load import load_library
from interlock.tokenization.gguf import gguf_tokenizer, read_metadata
from interlock.tokenization.pre_tokenizers import PRE_TOKENIZERS

TEXTS = (
    "",
    "Hello world! It's 12345.67 o'clock, they'LL we've I'M don'T",
    "def f(x):\n    return x**2  # note\n\n\n\tif a==b:\r\n\t\tpass  \n",
    "中文测试，这是一个句子。日本語のテキスト、カタカナ한국어 텍스트입니다",
    "Ünïcödé ÀÉÎÕÜß straße ЁЖ привет ελληνικά ａｂＣ",
    "🙂👩‍👩‍👧‍👦🇩🇪 emoji",
    "  leading   spaces  and trailing   ",
    "\n\n\n \n\t \r\n \n",
    '{"name": "get_weather", "arguments": {"city": "Köln", "n": -1.5e10}}',
    "٠١٢٣ १२३ ½ ² Ⅷ ① 1,000,000 $9.99 1234567",
    "CamelCaseWords HTTPServer iPhone snake_case <tag attr='x'/> http://a.b/c?d=e#f",
    "x" * 40 + "=" * 50 + " " * 33 + "y",
)
# llama.cpp approximates the published patterns of these; ours follow the published ones.
APPROXIMATED = {"gpt-4o", "tekken", "kimi-k2"}
DISTINCT = {repr(value): name for name, value in reversed(PRE_TOKENIZERS.items())}.values()
SIZES = {"llama.context_length": 64, "llama.embedding_length": 8, "llama.block_count": 1}
SIZES |= {"llama.feed_forward_length": 8, "llama.attention.head_count": 1}
ARCHITECTURE = {"general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": 1e-5, **SIZES}


class Theirs:
    """The vocabulary of a GGUF file as llama.cpp reads it."""

    def __init__(self, native: Any, model: int) -> None:
        self._native = native
        self._vocab = native.llama_model_get_vocab(model)
        native.llama_tokenize.argtypes = [
            *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32),
            *(ctypes.c_bool, ctypes.c_bool),
        ]
        native.llama_token_to_piece.argtypes = [
            *(ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_bool)
        ]
        native.llama_vocab_is_eog.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        native.llama_vocab_is_eog.restype = ctypes.c_bool
        self.size = native.llama_vocab_n_tokens(self._vocab)

    def encode(self, text: str, *, special: bool) -> list[int]:
        data = text.encode()
        ids = (ctypes.c_int32 * (len(data) + 8))()
        count = self._native.llama_tokenize(self._vocab, data, len(data), ids, len(ids), False, special)
        assert count >= 0
        return list(ids[:count])

    def piece(self, token_id: int) -> bytes:
        buffer = ctypes.create_string_buffer(1024)
        length = self._native.llama_token_to_piece(self._vocab, token_id, buffer, len(buffer), 0, True)
        return buffer.raw[:length]

    def end_ids(self) -> tuple[int, ...]:
        return tuple(i for i in range(self.size) if self._native.llama_vocab_is_eog(self._vocab, i))


@contextmanager
def llama_cpp(path: Path) -> Iterator[Theirs]:
    native = load_library().native
    params = native.llama_model_default_params()
    params.vocab_only = True
    model = native.llama_model_load_from_file(bytes(path), params)
    assert model
    try:
        yield Theirs(native, model)
    finally:
        native.llama_model_free(model)


@pytest.mark.model
def test_the_demo_model_is_tokenised_as_llama_cpp_does(demo_model: Path) -> None:
    ours = gguf_tokenizer(read_metadata(demo_model))
    spelling = st.sampled_from(sorted(ours.special_tokens))
    with llama_cpp(demo_model) as theirs:
        assert [theirs.piece(i) for i in range(theirs.size)] == list(ours.vocabulary.tokens)
        assert theirs.end_ids() == ours.vocabulary.stop_ids

        @settings(max_examples=300, derandomize=True, deadline=None, database=None)
        @given(st.lists(st.one_of(st.text(), st.sampled_from(TEXTS), spelling), max_size=6).map("".join))
        def check(text: str) -> None:
            assert ours.encode_text(text) == theirs.encode(text, special=False)
            assert ours.encode(text) == theirs.encode(text, special=True)

        check()


@pytest.mark.model
@pytest.mark.parametrize("pre", sorted(set(DISTINCT) - APPROXIMATED))
def test_each_pre_tokenizer_cuts_words_as_llama_cpp_does(
    pre: str, demo_model: Path, gguf_file: Callable[[Mapping[str, Any]], Path]
) -> None:
    demo = read_metadata(demo_model)
    metadata = ARCHITECTURE | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": demo["tokenizer.ggml.tokens"],
        "tokenizer.ggml.token_type": demo["tokenizer.ggml.token_type"].tolist(),
        "tokenizer.ggml.merges": demo["tokenizer.ggml.merges"],
    }
    ours = gguf_tokenizer(metadata)
    with llama_cpp(gguf_file(metadata)) as theirs:
        for text in TEXTS:
            assert ours.encode_text(text) == theirs.encode(text, special=False), text


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_vocabularies_are_tokenised_as_llama_cpp_does(
    prefix: bool,
    sentencepiece_metadata: dict[str, Any],
    gguf_file: Callable[[Mapping[str, Any]], Path],
) -> None:
    metadata = ARCHITECTURE | sentencepiece_metadata | {"tokenizer.ggml.add_space_prefix": prefix}
    ours = gguf_tokenizer(metadata)
    word = st.sampled_from(["hello", "world", " ", "  ", "he", "ll", "\n", "é", "🙂", "</", "<s", "w", "o"])
    special = st.sampled_from(["<s>", "</s>", "<|im_start|>", "<think>"])
    with llama_cpp(gguf_file(metadata)) as theirs:
        unused = metadata["tokenizer.ggml.tokens"].index("[PAD0]")
        for token_id in set(range(theirs.size)) - {unused}:
            assert theirs.piece(token_id) == ours.vocabulary.tokens[token_id]
        assert theirs.end_ids() == ours.vocabulary.stop_ids

        @settings(max_examples=200, derandomize=True, deadline=None, database=None)
        @given(st.lists(st.one_of(word, special), max_size=12).map("".join))
        def check(text: str) -> None:
            assert ours.encode(text) == theirs.encode(text, special=True)
            # llama.cpp also puts the space before plain text, and reads user-defined tokens in it.
            if not prefix and "<think>" not in text and "<s" not in text and "</" not in text:
                assert ours.encode_text(text) == theirs.encode(text, special=False)

        check()
