"""Load a Hugging Face folder of safetensors onto a torch device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from interlock.config import EngineConfig, TorchConfig
from interlock.errors import InterlockError
from interlock.runners.torch import attention

_LAYER_TYPES = frozenset({"full_attention", "sliding_attention"})
_LENGTH_DEPENDENT_ROPE = frozenset({"dynamic", "longrope"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """network: a causal language model of transformers. num_logits: width of its output. looks_back: why its pass looks at
    numbers on the host, which no graph can hold; empty where it does not."""

    network: Any
    device: torch.device
    dtype: torch.dtype
    name: str
    num_logits: int
    context_tokens: int
    looks_back: str


def load_model(config: EngineConfig, max_default_context_tokens: int) -> LoadedModel:
    """Raises ``InterlockError`` (``invalid_value``) that says what of the folder, the device or the model does not fit."""
    folder = config.model
    if not (folder / "config.json").is_file():
        raise _wrong(f"{folder} is no folder with a config.json and safetensors files")
    device = _device(config.torch.device)
    transformers.utils.logging.disable_progress_bar()
    try:
        model_config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise _wrong(f"the config.json of {folder} cannot be used: {error}") from error
    text_config = model_config.get_text_config(decoder=True)
    _check_architecture(model_config, text_config)
    context_tokens = _context_tokens(config, text_config, max_default_context_tokens)
    network = _network(folder, device, _dtype(config.torch, device))
    return LoadedModel(
        network=network,
        device=device,
        dtype=network.dtype,
        name=f"{type(network).__name__} {folder.resolve().name}",
        num_logits=network.get_output_embeddings().weight.shape[0],
        context_tokens=context_tokens,
        looks_back=_looks_back(network.config.get_text_config(decoder=True)),
    )


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
        if device.type != "cpu" and device.index is not None:
            torch.accelerator.set_device_index(device.index)  # streams and pinned memory are of the current one
    except (RuntimeError, AssertionError) as error:
        raise _wrong(f"torch has no device {name!r} here: {str(error).splitlines()[0]}") from error
    return device


def _dtype(config: TorchConfig, device: torch.device) -> Any:
    """On a CPU numbers of 16 bits are slower than those of 32."""
    if config.dtype != "auto":
        return getattr(torch, config.dtype)
    return torch.float32 if device.type == "cpu" else "auto"


def _network(folder: Path, device: torch.device, dtype: Any) -> Any:
    attention.register()
    try:
        network = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=attention.NAME,
            local_files_only=True,
            use_safetensors=True,
        )
        if not network._supports_attention_backend:
            raise _wrong(f"{type(network).__name__} has an attention of its own, which cannot be exchanged")
        return network.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise _wrong(f"{folder} does not fit into the memory of {device}") from error
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise _wrong(f"{folder} cannot be loaded: {error}") from error


def _check_architecture(config: Any, text_config: Any) -> None:
    """Refuse what would be computed wrongly."""
    if config.is_encoder_decoder:
        raise _wrong(f"{config.model_type} is not a decoder-only model")
    kinds = set(getattr(text_config, "layer_types", None) or ())
    if not kinds <= _LAYER_TYPES:
        names = ", ".join(sorted(kinds - _LAYER_TYPES))
        raise _wrong(f"{config.model_type} has layers of kind {names}, which keep no cache that can be cut")
    if getattr(text_config, "num_kv_shared_layers", 0):
        raise _wrong(f"{config.model_type} has layers that share a cache")


def _context_tokens(config: EngineConfig, text_config: Any, max_default_tokens: int) -> int:
    trained_tokens = _trained_tokens(text_config)
    if config.context_tokens == 0:
        return min(trained_tokens, max_default_tokens)
    if config.context_tokens > trained_tokens:
        raise _wrong(f"context_tokens is {config.context_tokens}, but the model was made for {trained_tokens}")
    return config.context_tokens


def _trained_tokens(text_config: Any) -> int:
    """Where positions are scaled by the longest sequence of a batch, what a text says would depend on its neighbours:
    such a model is used within the length at which nothing is scaled."""
    longest = int(getattr(text_config, "max_position_embeddings", 0) or 2**31)
    for parameters in _length_dependent_ropes(text_config):
        longest = min(longest, int(parameters.get("original_max_position_embeddings") or longest))
    return longest


def _length_dependent_ropes(text_config: Any) -> list[dict[str, Any]]:
    """Their parameters; models may have one for each kind of layer."""
    rope = getattr(text_config, "rope_parameters", None) or {}
    every = (rope, *(one for one in rope.values() if isinstance(one, dict)))
    return [one for one in every if one.get("rope_type") in _LENGTH_DEPENDENT_ROPE]


def _looks_back(text_config: Any) -> str:
    if _length_dependent_ropes(text_config):
        return "its positions are scaled by the longest text"
    num_experts = getattr(text_config, "num_experts", None) or getattr(text_config, "num_local_experts", None)
    if num_experts and getattr(text_config, "_experts_implementation", None) != "grouped_mm":
        return "its experts are called one by one here"
    return ""


def _wrong(message: str) -> InterlockError:
    return InterlockError("invalid_value", message, param="model")
