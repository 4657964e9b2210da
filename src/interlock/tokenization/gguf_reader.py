"""Reads the header of a GGUF file (versions 2 and 3, little-endian): every metadata key, and where the tensors are.

Layout: magic, u32 version, u64 tensors, u64 keys; then per key a string, a u32 type and a value. A string
is a u64 length and UTF-8 bytes, an array a u32 item type, a u64 count and the items. Then per tensor a string, a
u32 number of dimensions, these as u64 (fastest first), a u32 type and the u64 offset behind the aligned header.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from interlock.errors import InterlockError

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {
    0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", _BOOL: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_DTYPES = {code: np.dtype(name) for code, name in _SCALARS.items()}
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_MIN_KEY_BYTES = 8 + 4 + 1  # name length, type, the smallest value
_MIN_TENSOR_BYTES = 8 + 4 + 4 + 8  # name length, dimensions, type, offset
_ALIGNMENT = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPlace:
    """shape: slowest dimension first, as in numpy. kind: GGML's number of the type. offset: bytes from the start
    of the file."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def read_metadata(path: Path) -> dict[str, Any]:
    """Metadata of the GGUF file at ``path``: numbers, bools, strings; an array of numbers is a numpy array,
    an array of strings a list. Raises ``InterlockError`` when the file cannot be read, is no GGUF file or is
    cut short; its cost is bounded by the size of the file, whatever counts it claims."""
    return _read(path, lambda reader: reader.metadata())


def read_tensor_places(path: Path) -> tuple[TensorPlace, ...]:
    """Where the tensors of the GGUF file at ``path`` are. Raises as ``read_metadata`` does."""
    return _read(path, lambda reader: reader.tensor_places())


def _read(path: Path, what: Callable[[_Reader], T]) -> T:
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise InterlockError(
                    "invalid_value", f"{path} is not a GGUF file", hint="give a .gguf file or a model folder"
                )
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return what(_Reader(path, data))
    except OSError as error:
        raise InterlockError("invalid_value", f"cannot read {path}: {error.strerror}") from error


class _Reader:
    """A cursor over the mapped file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._size = len(data)
        self._offset = len(MAGIC)
        self._num_tensors = 0

    def metadata(self) -> dict[str, Any]:
        version = self._u32()
        if version not in _VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            kind = "big-endian" if swapped in _VERSIONS else f"version {version}"
            self._fail(f"is a {kind} GGUF file; versions 2 and 3, little-endian, are supported")
        self._num_tensors = self._u64()
        num_keys = self._count(_MIN_KEY_BYTES)
        result = {}
        for _ in range(num_keys):
            key = self._string("strict")
            result[key] = self._value(self._u32())
        return result

    def tensor_places(self) -> tuple[TensorPlace, ...]:
        alignment = int(self.metadata().get("general.alignment", _ALIGNMENT))
        if self._num_tensors * _MIN_TENSOR_BYTES > self._size - self._offset:
            self._cut_short()
        found = []
        for _ in range(self._num_tensors):
            name = self._string("strict")
            shape = tuple(self._u64() for _ in range(self._u32()))[::-1]
            found.append((name, shape, self._u32(), self._u64()))
        start = -(-self._offset // alignment) * alignment
        return tuple(
            TensorPlace(name=name, shape=shape, kind=kind, offset=start + offset)
            for name, shape, kind, offset in found
        )

    def _value(self, code: int) -> Any:
        if code == _STRING:
            return self._string("replace")
        if code == _ARRAY:
            return self._array()
        return self._numbers(code, 1)[0].item()

    def _array(self) -> Any:
        code = self._u32()
        if code == _STRING:
            return self._strings(self._count(_U64.size))
        return self._numbers(code, self._count(1))

    def _numbers(self, code: int, count: int) -> Any:
        dtype = _DTYPES.get(code)
        if dtype is None:
            self._fail(f"has a metadata value of unknown type {code}")
        start = self._advance(count * dtype.itemsize)
        return np.frombuffer(self._data[start : self._offset], dtype)

    def _strings(self, count: int) -> list[str]:
        # The loop over a whole vocabulary: locals and one bounds check keep 150,000 strings under 0.1 s.
        data, size, offset, unpack = self._data, self._size, self._offset, _U64.unpack_from
        result = []
        for _ in range(count):
            start = offset + 8
            if start > size:
                self._cut_short()
            offset = start + unpack(data, offset)[0]
            if offset > size:
                self._cut_short()
            result.append(data[start:offset])
        self._offset = offset
        try:
            return [item.decode() for item in result]
        except UnicodeDecodeError:
            self._fail("has a metadata string that is not UTF-8")

    def _string(self, errors: str) -> str:
        start = self._advance(self._u64())
        try:
            return self._data[start : self._offset].decode("utf-8", errors)
        except UnicodeDecodeError:
            self._fail("has a metadata key that is not UTF-8")

    def _count(self, item_bytes: int) -> int:
        """A number of items, each at least ``item_bytes`` long."""
        count = self._u64()
        if count * item_bytes > self._size - self._offset:
            self._cut_short()
        return count

    def _u32(self) -> int:
        return int(_U32.unpack_from(self._data, self._advance(_U32.size))[0])

    def _u64(self) -> int:
        return int(_U64.unpack_from(self._data, self._advance(_U64.size))[0])

    def _advance(self, num_bytes: int) -> int:
        """Move on; returns where the cursor was."""
        start = self._offset
        if num_bytes > self._size - start:
            self._cut_short()
        self._offset = start + num_bytes
        return start

    def _cut_short(self) -> NoReturn:
        self._fail("is damaged or cut short: its header goes on after the end of the file")

    def _fail(self, what: str) -> NoReturn:
        raise InterlockError("invalid_value", f"{self._path} {what}")
