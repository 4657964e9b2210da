"""Load a GGUF file and open a context on it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.config import EngineConfig, LlamaCppConfig
from interlock.errors import InterlockError
from interlock.runners.base import RunnerCapabilities
from interlock.runners.llama_cpp import abi
from interlock.runners.llama_cpp.load import Library
from interlock.runners.threads import default_threads

_MAGIC = b"GGUF"
# llama.cpp's CPU kernels sum in another order from 64 tokens of a sequence in one physical batch on. Below, logits do
# not depend on how a prompt was cut, which exact replay, prefix reuse and drafts rest on; prefill pays 15 to 30 %.
_EXACT_BELOW = 64
_UBATCH_TOKENS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model and a context on it, as the library's pointers; ``close`` frees both."""

    library: Library
    model: int
    context: int
    memory: int
    name: str
    num_logits: int
    context_tokens: int
    max_part_tokens: int
    capabilities: RunnerCapabilities

    def close(self) -> None:
        self.library.native.llama_free(self.context)
        self.library.native.llama_model_free(self.model)


def load_model(library: Library, config: EngineConfig, max_default_context_tokens: int) -> LoadedModel:
    """Raises ``InterlockError`` (``invalid_value``) with the library's reason where that fails."""
    native = library.native
    model = _load_weights(library, config.model, config.llama_cpp)
    try:
        if not native.llama_model_has_decoder(model) or native.llama_model_has_encoder(model):
            raise InterlockError("invalid_value", f"{config.model} is not a decoder-only model")
        if native.llama_model_is_diffusion(model):
            raise InterlockError(
                "invalid_value", f"{config.model} is a diffusion model, which does not write from left to right"
            )
        context_tokens = _context_tokens(
            config, native.llama_model_n_ctx_train(model), max_default_context_tokens
        )
        context = _open_context(library, model, config, context_tokens)
    except InterlockError:
        native.llama_model_free(model)
        raise
    description = ctypes.create_string_buffer(256)
    native.llama_model_desc(model, description, len(description))
    return LoadedModel(
        library=library,
        model=model,
        context=context,
        memory=native.llama_get_memory(context),
        name=description.value.decode("utf-8", "replace"),
        num_logits=native.llama_vocab_n_tokens(native.llama_model_get_vocab(model)),
        context_tokens=context_tokens,
        max_part_tokens=_ubatch_tokens(config),
        capabilities=_capabilities(library, model, config),
    )


def _load_weights(library: Library, path: Path, options: LlamaCppConfig) -> int:
    _check_file(path)
    native = library.native
    if options.gpu_layers and not native.llama_supports_gpu_offload():
        raise InterlockError(
            "invalid_value",
            f"gpu_layers is {options.gpu_layers}, but {library.name} {library.version} has no GPU support",
            hint="install a build with a GPU backend, or set gpu_layers to 0",
        )
    params = native.llama_model_default_params()
    params.n_gpu_layers = options.gpu_layers
    if hasattr(params, "load_mode"):
        params.load_mode = abi.LOAD_MODE_MMAP if options.use_mmap else abi.LOAD_MODE_NONE
    else:
        params.use_mmap = options.use_mmap
    library.messages.clear()
    model = native.llama_model_load_from_file(bytes(path), params)
    if not model:
        raise InterlockError("invalid_value", f"{path} cannot be loaded: {library.messages.last()}")
    return int(model)


def _check_file(path: Path) -> None:
    """The two commonest mistakes, said better than the library does."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise InterlockError("invalid_value", f"{path} cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise InterlockError("invalid_value", f"{path} is not a GGUF file")


def _context_tokens(config: EngineConfig, trained_tokens: int, max_default_tokens: int) -> int:
    if config.context_tokens == 0:
        return min(trained_tokens, max_default_tokens)
    if config.context_tokens > trained_tokens:
        raise InterlockError(
            "invalid_value",
            f"context_tokens is {config.context_tokens}, but the model was trained for {trained_tokens}",
        )
    return config.context_tokens


def _open_context(library: Library, model: int, config: EngineConfig, context_tokens: int) -> int:
    native = library.native
    params = native.llama_context_default_params()
    _set_context_params(params, config, context_tokens)
    library.messages.clear()
    context = native.llama_init_from_model(model, params)
    if not context:
        raise InterlockError(
            "invalid_value",
            f"no context of {config.slots} x {context_tokens} tokens: {library.messages.last()}",
            hint="fewer slots or context tokens need less memory",
        )
    if native.llama_n_ctx(context) < config.slots * context_tokens:
        native.llama_free(context)
        raise InterlockError(
            "invalid_value", f"the library gives less than {config.slots} x {context_tokens} tokens"
        )
    return int(context)


def _ubatch_tokens(config: EngineConfig) -> int:
    """Tokens of one physical batch: exact on CPUs, as long as one token of each slot fits."""
    if config.llama_cpp.gpu_layers:
        return config.max_batch_tokens
    return min(config.max_batch_tokens, max(_UBATCH_TOKENS, config.slots))


def _set_context_params(params: Any, config: EngineConfig, context_tokens: int) -> None:
    options = config.llama_cpp
    params.n_ctx = context_tokens * config.slots
    params.n_seq_max = config.slots
    params.n_batch = config.max_batch_tokens
    params.n_ubatch = _ubatch_tokens(config)
    # Any token of a step may need its logits: prompts end, drafts are verified.
    if hasattr(params, "n_outputs_max_per_seq"):
        params.n_outputs_max_per_seq = config.max_batch_tokens
    params.n_threads = params.n_threads_batch = options.threads or default_threads(options.sharers)
    params.flash_attn_type = abi.FLASH_ATTENTION[options.flash_attention]
    params.type_k = abi.KV_TYPES[options.kv_type_k]
    params.type_v = abi.KV_TYPES[options.kv_type_v]
    # A cache per slot: with one shared cache, logits depend on what else is in the batch.
    params.kv_unified = False


def _capabilities(library: Library, model: int, config: EngineConfig) -> RunnerCapabilities:
    """Recurrent states cannot be cut. Logits are exact on CPUs, with flash attention only."""
    native, options = library.native, config.llama_cpp
    is_recurrent = native.llama_model_is_recurrent(model) or native.llama_model_is_hybrid(model)
    is_exact = (
        options.gpu_layers == 0
        and options.flash_attention != "off"
        and _ubatch_tokens(config) < _EXACT_BELOW
        and not is_recurrent
    )
    return RunnerCapabilities(
        partial_rollback=not is_recurrent,
        prefix_copy=not is_recurrent,
        saved_states=not is_recurrent,
        bit_identical=is_exact,
    )
