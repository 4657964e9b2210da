"""Quantise a GGUF file: ``python -m interlock.runners.llama_cpp.quantize IN OUT --type q8_0``.

Every matrix becomes the new type, whatever it was (already quantised ones are decoded first); vectors, such as
norms, keep theirs. Done over the library's gguf functions, as not every build has ``llama_model_quantize``.
The whole model is held in memory twice.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError
from interlock.runners.llama_cpp import abi
from interlock.runners.llama_cpp.load import load_library

# name -> (enum ggml_type, enum llama_ftype)
TYPES = {"q8_0": (8, 7), "f16": (1, 1)}
_GGML_F32, _GGML_F16, _GGML_BF16 = 0, 1, 30
_QUANTIZATION_VERSION = 2


class _InitParams(ctypes.Structure):
    """struct gguf_init_params."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.POINTER(ctypes.c_void_p)))


def quantize(source: Path, target: Path, type_name: str) -> None:
    """Write ``target``. Raises ``InterlockError`` where a file cannot be read, decoded or written."""
    if not source.is_file():
        raise InterlockError("invalid_value", f"{source} is not there")
    library = load_library()
    native = library.native
    native.gguf_init_from_file.restype = ctypes.c_void_p
    native.gguf_init_from_file.argtypes = [ctypes.c_char_p, _InitParams]
    if missing := abi.declare(native, abi.QUANTIZE_PROTOTYPES):
        raise InterlockError("invalid_value", f"{library.name} {library.version} lacks {', '.join(missing)}")
    library.messages.clear()
    tensors = ctypes.c_void_p()
    metadata = native.gguf_init_from_file(bytes(source), _InitParams(False, ctypes.pointer(tensors)))
    if not metadata:
        raise InterlockError("invalid_value", f"{source} is not a GGUF file: {library.messages.last()}")
    try:
        _convert(native, metadata, tensors, target, type_name)
    finally:
        native.ggml_free(tensors)
        native.gguf_free(metadata)


def _convert(
    native: ctypes.CDLL, metadata: int, tensors: ctypes.c_void_p, target: Path, type_name: str
) -> None:
    ggml_type, file_type = TYPES[type_name]
    output = native.gguf_init_empty()
    try:
        native.gguf_set_kv(output, metadata)
        native.gguf_set_val_u32(output, b"general.file_type", file_type)
        native.gguf_set_val_u32(output, b"general.quantization_version", _QUANTIZATION_VERSION)
        kept = []  # the library takes addresses only
        for tensor in _each(native, tensors):
            native.gguf_add_tensor(output, tensor)
            encoded = _encoded(native, metadata, tensor, ggml_type)
            if encoded is not None:
                kept.append(encoded)
                name = native.ggml_get_name(tensor)
                native.gguf_set_tensor_type(output, name, ggml_type)
                native.gguf_set_tensor_data(output, name, encoded.ctypes.data)
        if not native.gguf_write_to_file(output, bytes(target), False):
            raise InterlockError("invalid_value", f"{target} cannot be written")
    finally:
        native.gguf_free(output)


def _each(native: ctypes.CDLL, tensors: ctypes.c_void_p) -> Iterator[int]:
    """All tensors of the file; the first of the context is the block that holds their data."""
    tensor = native.ggml_get_next_tensor(tensors, native.ggml_get_first_tensor(tensors))
    while tensor:
        yield tensor
        tensor = native.ggml_get_next_tensor(tensors, tensor)


def _encoded(native: ctypes.CDLL, metadata: int, tensor: int, ggml_type: int) -> NDArray[np.uint8] | None:
    """The tensor's data in the new type; ``None`` where it keeps its own."""
    name = native.ggml_get_name(tensor)
    old_type = native.gguf_get_tensor_type(metadata, native.gguf_find_tensor(metadata, name))
    num_rows, num_elements = native.ggml_nrows(tensor), native.ggml_nelements(tensor)
    row_length = num_elements // num_rows
    if native.ggml_n_dims(tensor) < 2 or old_type == ggml_type or row_length % native.ggml_blck_size(ggml_type):
        return None
    values = _decoded(native, native.ggml_get_data(tensor), num_elements, old_type)
    encoded = np.empty(num_rows * native.ggml_row_size(ggml_type, row_length), dtype=np.uint8)
    native.ggml_quantize_chunk(
        ggml_type, values.ctypes.data, encoded.ctypes.data, 0, num_rows, row_length, None
    )
    return encoded


def _decoded(native: ctypes.CDLL, data: int, num_elements: int, ggml_type: int) -> NDArray[np.float32]:
    values = np.empty(num_elements, dtype=np.float32)
    if ggml_type == _GGML_F32:
        ctypes.memmove(values.ctypes.data, data, values.nbytes)
        return values
    type_name = native.ggml_type_name(ggml_type).decode()
    names = {_GGML_F16: "ggml_fp16_to_fp32_row", _GGML_BF16: "ggml_bf16_to_fp32_row"}
    decode = getattr(native, names.get(ggml_type, f"dequantize_row_{type_name}"), None)
    if decode is None:
        raise InterlockError("invalid_value", f"tensors of type {type_name} cannot be decoded")
    decode.restype, decode.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    decode(data, values.ctypes.data, num_elements)
    return values


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--type", "type_name", type=click.Choice(sorted(TYPES)), default="q8_0", show_default=True)
def main(source: Path, target: Path, type_name: str) -> None:
    """Write SOURCE to TARGET with its matrices in another type."""
    start = time.monotonic()
    try:
        quantize(source, target, type_name)
    except InterlockError as error:
        click.echo(f"error: {error.message}", err=True)
        sys.exit(1)
    size = target.stat().st_size / 1e6
    click.echo(f"{target}: {type_name}, {size:.0f} MB, {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
