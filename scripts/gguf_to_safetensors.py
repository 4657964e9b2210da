"""Turns a GGUF file of the architecture ``llama`` into a Hugging Face folder, for engines that read nothing else.

    python scripts/gguf_to_safetensors.py MODEL.gguf FOLDER

Needs numpy only. Tensors may be F32, F16 or Q8_0 and become float32, so that what the folder says is what the GGUF
file says, weight for weight. The folder gets config, tokenizer, chat template and ``model.safetensors``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from interlock import env
from interlock.errors import InterlockError
from interlock.provision.demo import demo_model
from interlock.tokenization.gguf import gguf_tokenizer
from interlock.tokenization.gguf_reader import TensorPlace, read_metadata, read_tensor_places

Weights = npt.NDArray[np.float32]

_F32, _F16, _Q8_0 = 0, 1, 8
_Q8_0_BLOCK = np.dtype([("scale", "<f2"), ("values", "i1", 32)])
_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def convert(source: Path, target: Path) -> None:
    """Write the folder ``target``. Raises ``InterlockError`` where ``source`` is not of the kind described above."""
    metadata = read_metadata(source)
    if metadata.get("general.architecture") != "llama":
        raise InterlockError("invalid_value", f"{source} is no model of the architecture llama")
    places = read_tensor_places(source)
    config = _config(metadata, ties_embeddings=all(place.name != "output.weight" for place in places))
    target.mkdir(parents=True, exist_ok=True)
    _write_tokenizer(metadata, target)
    _write_json(target / "config.json", config)
    _write_json(target / "generation_config.json", {"eos_token_id": config["eos_token_id"]})
    _write_safetensors(target / "model.safetensors", dict(_tensors(source, places, config)))


def demo_folder() -> Path:
    """The embedded model as a folder; made on first use and kept beside the GGUF file."""
    source = demo_model(env.cache_dir(), None)
    folder = source.with_name("SmolLM2-135M-Instruct.F32")
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "model.safetensors").is_file():
            convert(source, folder)
    return folder


def _config(metadata: Mapping[str, Any], *, ties_embeddings: bool) -> dict[str, Any]:
    def of_model(key: str) -> Any:
        return metadata[f"llama.{key}"]

    heads = of_model("attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": of_model("embedding_length"),
        "intermediate_size": of_model("feed_forward_length"),
        "num_hidden_layers": of_model("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": of_model("attention.head_count_kv"),
        "head_dim": of_model("embedding_length") // heads,
        "max_position_embeddings": of_model("context_length"),
        "rms_norm_eps": of_model("attention.layer_norm_rms_epsilon"),
        "rope_theta": of_model("rope.freq_base"),
        "hidden_act": "silu",
        "tie_word_embeddings": ties_embeddings,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
    }


def _write_tokenizer(metadata: Mapping[str, Any], target: Path) -> None:
    tokenizer = gguf_tokenizer(metadata)
    described = json.loads(tokenizer.to_json())
    if described["decoder"] is None:  # our own reading needs none, other programs do
        described["decoder"] = {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        }
    _write_json(target / "tokenizer.json", described)
    spelled = metadata["tokenizer.ggml.tokens"]
    _write_json(
        target / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_bos_token": False,
            "bos_token": spelled[metadata["tokenizer.ggml.bos_token_id"]],
            "eos_token": spelled[metadata["tokenizer.ggml.eos_token_id"]],
            "model_max_length": metadata["llama.context_length"],
            "chat_template": metadata["tokenizer.chat_template"],
        },
    )


def _tensors(
    source: Path, places: tuple[TensorPlace, ...], config: Mapping[str, Any]
) -> Iterator[tuple[str, Weights]]:
    data = np.memmap(source, mode="r")
    for place in places:
        found = _BLOCK.fullmatch(place.name)
        if found is None:
            name = _NAMES.get(place.name)
        else:
            name = (
                f"model.layers.{found[1]}.{_BLOCK_NAMES[found[2]]}.weight" if found[2] in _BLOCK_NAMES else None
            )
        if name is None:
            raise InterlockError(
                "invalid_value", f"{source} has a tensor {place.name} that a llama does not have"
            )
        weights = _weights(data, place)
        for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
            if part in name:
                weights = _rotated_by_halves(weights, config[heads])
        yield name, weights


def _weights(data: npt.NDArray[np.uint8], place: TensorPlace) -> Weights:
    size = int(np.prod(place.shape))
    if place.kind in (_F32, _F16):
        dtype = np.dtype("<f4" if place.kind == _F32 else "<f2")
        flat = np.frombuffer(data, dtype, size, place.offset).astype(np.float32)
    elif place.kind == _Q8_0:
        blocks = np.frombuffer(data, _Q8_0_BLOCK, size // 32, place.offset)
        flat = blocks["scale"].astype(np.float32)[:, None] * blocks["values"]
    else:
        raise InterlockError("invalid_value", f"the tensor {place.name} is neither F32, F16 nor Q8_0")
    return flat.reshape(place.shape)


def _rotated_by_halves(weights: Weights, heads: int) -> Weights:
    """GGUF keeps the two numbers that the position rotates together side by side, transformers half a head apart."""
    rows, columns = weights.shape
    pairs = weights.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, columns))


def _write_json(path: Path, value: Any) -> None:
    def plain(number: Any) -> Any:
        return number.item()

    path.write_text(json.dumps(value, ensure_ascii=False, indent=2, default=plain), "utf-8")


def _write_safetensors(path: Path, tensors: Mapping[str, Weights]) -> None:
    """Layout: the header's length as a u64, a JSON header of types, shapes and places, the data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, weights in tensors.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(weights.shape),
            "data_offsets": [end, end + weights.nbytes],
        }
        end += weights.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    writing = path.with_suffix(".part")  # a folder with a model.safetensors is whole
    with writing.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for weights in tensors.values():
            file.write(weights.astype("<f4").tobytes())
    writing.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    try:
        convert(options.source, options.target)
    except InterlockError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main()
