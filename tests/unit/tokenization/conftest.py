"""A writer of small GGUF files, and small vocabularies to put in them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.tokenization.token_bytes import BYTE_TOKENS

GgufBytes = Callable[[Mapping[str, Any]], bytes]


@pytest.fixture(scope="session")
def gguf_bytes() -> GgufBytes:
    """Encodes metadata (str, bool, int, float, lists of str, int or float) as a GGUF file without tensors."""
    return _encode


@pytest.fixture
def gguf_file(tmp_path: Path, gguf_bytes: GgufBytes) -> Callable[[Mapping[str, Any]], Path]:
    def write(metadata: Mapping[str, Any]) -> Path:
        path = tmp_path / "model.gguf"
        path.write_bytes(gguf_bytes(metadata))
        return path

    return write


@pytest.fixture
def sentencepiece_metadata() -> dict[str, Any]:
    """A SentencePiece vocabulary: 0-2 <unk> <s> </s>, 256 byte tokens, then words, the best score first."""
    pieces = [
        "▁▁", "he", "ll", "o", "hell", "▁hell", "▁hello", "h", "e", "l", "▁", "w", "r", "d", "wo", "rl", "▁wo",
        "▁world", "rld", "<", "s", ">", "<s", "</", "/", "\n",
    ]  # fmt: skip
    added = [("<|im_start|>", 3), ("<think>", 4), ("  ", 4), ("[PAD0]", 5)]
    specials = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]
    tokens = [text for text, _ in specials] + list(BYTE_TOKENS) + pieces + [text for text, _ in added]
    kinds = [kind for _, kind in specials] + [6] * 256 + [1] * len(pieces) + [kind for _, kind in added]
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(pieces))] + [0.0] * len(added)
    return {
        "general.architecture": "llama",
        "general.name": "small",
        "llama.context_length": 128,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def _encode(metadata: Mapping[str, Any]) -> bytes:
    parts = [b"GGUF", struct.pack("<IQQ", 3, 0, len(metadata))]
    for key, value in metadata.items():
        parts += [_string(key), _value(value)]
    return b"".join(parts)


def _value(value: Any) -> bytes:
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [_scalar(item, "i") for item in value]
        return (
            struct.pack("<I", 9) + items[0][:4] + struct.pack("<Q", len(value)) + b"".join(i[4:] for i in items)
        )
    return _scalar(value, "I")


def _scalar(value: Any, integer: str) -> bytes:
    """Type and value; integers are unsigned (``I``) alone and signed (``i``) in lists, as converters write."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack(f"<I{integer}", {"I": 4, "i": 5}[integer], value)
    return struct.pack("<If", 6, value)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
