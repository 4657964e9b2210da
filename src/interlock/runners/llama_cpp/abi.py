"""The part of llama.cpp's C interface that is used, as ctypes declares it.

The parameter structs are passed by value and change within weeks, so the layouts below hold for one version.
``mismatches`` compares what a library's default functions return with what that version returns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_float,
    c_int,
    c_int8,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from dataclasses import dataclass
from typing import Any, ClassVar

XLLAMACPP_VERSION = "2026.10.11549"

# enum ggml_type, only what a cache can be made of
KV_TYPES: Mapping[str, int] = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "bf16": 30}
# enum llama_flash_attn_type
FLASH_ATTENTION: Mapping[str, int] = {"auto": -1, "off": 0, "on": 1}
# enum llama_load_mode
LOAD_MODE_NONE, LOAD_MODE_MMAP = 0, 1
LOG_CALLBACK = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
# enum ggml_log_level
LOG_ERROR, LOG_CONTINUE = 4, 5


class ModelParams(ctypes.Structure):
    """struct llama_model_params."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int),
        ("load_mode", c_int),
        ("lazy_mode", c_int),
        ("main_gpu", c_int32),
        ("tensor_split", c_void_p),
        ("progress_callback", c_void_p),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("vocab_only", c_bool),
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
    ]


class ContextParams(ctypes.Structure):
    """struct llama_context_params."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int),
        ("rope_scaling_type", c_int),
        ("pooling_type", c_int),
        ("attention_type", c_int),
        ("flash_attn_type", c_int),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int),
        ("type_v", c_int),
        ("moe_cache_size", c_size_t),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", c_void_p),
        ("n_samplers", c_size_t),
        ("ctx_other", c_void_p),
    ]


class Batch(ctypes.Structure):
    """struct llama_batch."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", c_void_p),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


@dataclass(frozen=True, slots=True)
class Structs:
    """The struct classes that fit one library."""

    model_params: type[ctypes.Structure]
    context_params: type[ctypes.Structure]
    batch: type[ctypes.Structure]


XLLAMACPP_STRUCTS = Structs(ModelParams, ContextParams, Batch)

# What the default functions of the pinned version return; fields not named here are 0.
MODEL_DEFAULTS: Mapping[str, float] = {
    "n_gpu_layers": -1,
    "split_mode": 1,
    "load_mode": -1,
    "lazy_mode": 1,
    "use_extra_bufts": 1,
}
CONTEXT_DEFAULTS: Mapping[str, float] = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "n_outputs_max_per_seq": 1,
    "n_threads": 4,
    "n_threads_batch": 4,
    "rope_scaling_type": -1,
    "pooling_type": -1,
    "attention_type": -1,
    "flash_attn_type": -1,
    "yarn_ext_factor": -1.0,
    "yarn_attn_factor": -1.0,
    "yarn_beta_fast": -1.0,
    "yarn_beta_slow": -1.0,
    "defrag_thold": -1.0,
    "type_k": 1,
    "type_v": 1,
    "offload_kqv": 1,
    "no_perf": 1,
    "op_offload": 1,
    "swa_full": 1,
}


def prototypes(structs: Structs) -> dict[str, tuple[Any, list[Any]]]:
    """Name of each function used -> (result type, argument types)."""
    pointer = c_void_p  # llama_model *, llama_context *, llama_memory_t, llama_vocab *
    return {
        "llama_backend_init": (None, []),
        "llama_log_set": (None, [LOG_CALLBACK, c_void_p]),
        "llama_model_default_params": (structs.model_params, []),
        "llama_context_default_params": (structs.context_params, []),
        "llama_model_load_from_file": (pointer, [c_char_p, structs.model_params]),
        "llama_model_free": (None, [pointer]),
        "llama_init_from_model": (pointer, [pointer, structs.context_params]),
        "llama_free": (None, [pointer]),
        "llama_n_ctx": (c_uint32, [pointer]),
        "llama_supports_gpu_offload": (c_bool, []),
        "llama_model_n_ctx_train": (c_int32, [pointer]),
        "llama_model_has_encoder": (c_bool, [pointer]),
        "llama_model_has_decoder": (c_bool, [pointer]),
        "llama_model_is_diffusion": (c_bool, [pointer]),
        "llama_model_is_recurrent": (c_bool, [pointer]),
        "llama_model_is_hybrid": (c_bool, [pointer]),
        "llama_model_get_vocab": (pointer, [pointer]),
        "llama_model_desc": (c_int32, [pointer, c_char_p, c_size_t]),
        "llama_vocab_n_tokens": (c_int32, [pointer]),
        "llama_get_memory": (pointer, [pointer]),
        "llama_memory_seq_rm": (c_bool, [pointer, c_int32, c_int32, c_int32]),
        "llama_state_seq_get_size": (c_size_t, [pointer, c_int32]),
        "llama_state_seq_get_data": (c_size_t, [pointer, c_void_p, c_size_t, c_int32]),
        "llama_state_seq_set_data": (c_size_t, [pointer, c_void_p, c_size_t, c_int32]),
        "llama_decode": (c_int32, [pointer, structs.batch]),
        "llama_get_logits_ith": (POINTER(c_float), [pointer, c_int32]),
    }


# ggml and gguf, for quantising a file; tensors are opaque pointers
QUANTIZE_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "ggml_get_first_tensor": (c_void_p, [c_void_p]),
    "ggml_get_next_tensor": (c_void_p, [c_void_p, c_void_p]),
    "ggml_get_name": (c_char_p, [c_void_p]),
    "ggml_get_data": (c_void_p, [c_void_p]),
    "ggml_nelements": (c_int64, [c_void_p]),
    "ggml_nrows": (c_int64, [c_void_p]),
    "ggml_n_dims": (c_int, [c_void_p]),
    "ggml_blck_size": (c_int64, [c_int]),
    "ggml_row_size": (c_size_t, [c_int, c_int64]),
    "ggml_type_name": (c_char_p, [c_int]),
    "ggml_free": (None, [c_void_p]),
    "ggml_quantize_chunk": (c_size_t, [c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p]),
    "gguf_init_empty": (c_void_p, []),
    "gguf_free": (None, [c_void_p]),
    "gguf_find_tensor": (c_int64, [c_void_p, c_char_p]),
    "gguf_get_tensor_type": (c_int, [c_void_p, c_int64]),
    "gguf_set_kv": (None, [c_void_p, c_void_p]),
    "gguf_set_val_u32": (None, [c_void_p, c_char_p, c_uint32]),
    "gguf_add_tensor": (None, [c_void_p, c_void_p]),
    "gguf_set_tensor_type": (None, [c_void_p, c_char_p, c_int]),
    "gguf_set_tensor_data": (None, [c_void_p, c_char_p, c_void_p]),
    "gguf_write_to_file": (c_bool, [c_void_p, c_char_p, c_bool]),
}


def declare(library: ctypes.CDLL, functions: Mapping[str, tuple[Any, list[Any]]]) -> list[str]:
    """Set the types of ``functions``; names of those that the library does not have."""
    missing = []
    for name, (result, arguments) in functions.items():
        function = getattr(library, name, None)
        if function is None:
            missing.append(name)
            continue
        function.restype, function.argtypes = result, arguments
    return missing


def mismatches(found: ctypes.Structure, expected: Mapping[str, float]) -> list[str]:
    """Fields whose value differs from ``expected`` (or from 0), as ``name = found (expected)``."""
    return [
        f"{name} = {value} ({expected.get(name, 0)})"
        for name, *_ in type(found)._fields_
        for value in [getattr(found, name) or 0]
        if value != expected.get(name, 0)
    ]
