"""The folder that the conversion writes says what the GGUF file says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from interlock.errors import InterlockError
from interlock.tokenization.gguf_reader import read_tensor_places
from interlock.tokenization.load import describe
from scripts.gguf_to_safetensors import convert

TEXTS = (
    "Hello, world!",
    "  two  spaces\n\n",
    "naïve 東京 🎉",
    "<|im_start|>user\nhi<|im_end|>",
    "123456 items",
)


def test_the_tokenizer_and_the_facts_are_the_same(demo_model: Path, demo_folder: Path):
    gguf, folder = describe(demo_model), describe(demo_folder)
    assert folder.tokenizer.vocabulary == gguf.tokenizer.vocabulary
    for text in TEXTS:
        assert folder.tokenizer.encode(text) == gguf.tokenizer.encode(text)
        assert folder.tokenizer.encode_text(text) == gguf.tokenizer.encode_text(text)
    for fact in ("architecture", "chat_template", "context_tokens", "bos_token", "eos_token"):
        assert getattr(folder, fact) == getattr(gguf, fact)


def test_weights_are_those_of_the_file(demo_model: Path, demo_folder: Path):
    header, weights = _safetensors(demo_folder / "model.safetensors")
    places = {place.name: place for place in read_tensor_places(demo_model)}
    data = np.memmap(demo_model, mode="r")
    norm = places["output_norm.weight"]
    assert weights["model.norm.weight"].tobytes() == bytes(data[norm.offset : norm.offset + 4 * norm.shape[0]])
    down = places["blk.3.ffn_down.weight"]
    block = bytes(data[down.offset : down.offset + 34])
    scale, values = np.frombuffer(block[:2], "<f2")[0], np.frombuffer(block[2:], "i1")
    converted = weights["model.layers.3.mlp.down_proj.weight"]
    assert converted.reshape(-1)[:32].tolist() == (np.float32(scale) * values).tolist()
    assert header["model.layers.3.mlp.down_proj.weight"]["shape"] == list(down.shape)
    # One key head of 64 rows: the file has the rotated pairs side by side, the folder half a head apart.
    key = places["blk.0.attn_k.weight"]
    scales = np.frombuffer(data, [("scale", "<f2"), ("values", "i1", 32)], key.shape[0] * 18, key.offset)
    rows = (scales["scale"].astype(np.float32)[:, None] * scales["values"]).reshape(key.shape)
    found = weights["model.layers.0.self_attn.k_proj.weight"]
    assert [found[row].tolist() for row in (0, 32, 1, 33)] == [rows[row].tolist() for row in (0, 1, 2, 3)]


def test_another_architecture_is_refused(tmp_path: Path, demo_model: Path):
    other = tmp_path / "other.gguf"
    other.write_bytes(
        demo_model.read_bytes()[:4_000_000].replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0gemma", 1)
    )
    with pytest.raises(InterlockError, match="architecture llama"):
        convert(other, tmp_path / "folder")


def _safetensors(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    data = np.memmap(path, mode="r")
    size = int.from_bytes(bytes(data[:8]), "little")
    header = json.loads(bytes(data[8 : 8 + size]))
    tensors = {
        name: np.frombuffer(
            data, "<f4", int(np.prod(entry["shape"])), 8 + size + entry["data_offsets"][0]
        ).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }
    return header, tensors
