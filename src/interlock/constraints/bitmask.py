"""The mask ABI, version 1.

A mask row is int32 ``[ceil(vocab/32)]``; bit ``i % 32`` of word ``i // 32`` is 1 when id ``i`` is allowed.
Bits at or above the vocabulary's size are zero. A batch is ``[rows, ceil(vocab/32)]``, C-contiguous.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

MASK_ABI_VERSION = 1

Mask = NDArray[np.int32]
Ids = NDArray[np.int64]


def num_words(vocab_size: int) -> int:
    """Words of one row."""
    return (vocab_size + 31) // 32


def allocate(num_rows: int, vocab_size: int) -> Mask:
    """Zeroed (nothing allowed) int32 [num_rows, ceil(vocab/32)]."""
    return np.zeros((num_rows, num_words(vocab_size)), dtype=np.int32)


def all_allowed(vocab_size: int) -> Mask:
    """One row that allows every id below ``vocab_size``."""
    return pack(np.ones(vocab_size, dtype=np.bool_))


def pack(allowed: NDArray[np.bool_]) -> Mask:
    """bool [vocab] -> int32 [ceil(vocab/32)]."""
    padded = np.zeros(num_words(allowed.size) * 32, dtype=np.bool_)
    padded[: allowed.size] = allowed
    return np.packbits(padded, bitorder="little").view("<i4").astype(np.int32, copy=False)


def unpack(row: Mask, vocab_size: int) -> NDArray[np.bool_]:
    """int32 [ceil(vocab/32)] -> bool [vocab]."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return bits[:vocab_size].astype(np.bool_)


def set_only(row: Mask, ids: Iterable[int]) -> None:
    """Allow exactly ``ids`` in ``row``."""
    row[:] = 0
    words = row.view(np.uint32)
    for token_id in ids:
        words[token_id >> 5] |= np.uint32(1 << (token_id & 31))


def of_ids(vocab_size: int, ids: Iterable[int]) -> Mask:
    """One row that allows exactly ``ids``."""
    row: Mask = allocate(1, vocab_size)[0]
    set_only(row, ids)
    return row


def without(row: Mask, ids: Iterable[int]) -> Mask:
    """A copy of ``row`` that allows none of ``ids``, which are ids of its vocabulary."""
    left = row.copy()
    for token_id in ids:
        clear(left, token_id)
    return left


def allowed_ids(row: Mask) -> list[int]:
    """The ids that ``row`` allows, in ascending order."""
    words = np.flatnonzero(row)
    bits = np.unpackbits(row[words].view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    which, bit = np.nonzero(bits)
    found: list[int] = (words[which] * 32 + bit).tolist()
    return found


def clear(row: Mask, token_id: int) -> None:
    """Forbid ``token_id``."""
    row.view(np.uint32)[token_id >> 5] &= ~np.uint32(1 << (token_id & 31))


def clear_all(row: Mask, ids: Ids) -> None:
    """Forbid all ``ids``, which are ids of its vocabulary."""
    bits = np.left_shift(np.uint32(1), (ids & 31).astype(np.uint32))
    np.bitwise_and.at(row.view(np.uint32), ids >> 5, ~bits)


def are_allowed(row: Mask, ids: Ids) -> NDArray[np.bool_]:
    """Which of ``ids``, ids of its vocabulary, ``row`` allows: bool [ids]."""
    allowed: NDArray[np.bool_] = (row[ids >> 5] >> (ids & 31)) & 1 == 1
    return allowed


def those_allowed(row: Mask, ids: Ids) -> Ids:
    """Those of ``ids``, ids of its vocabulary, that ``row`` allows."""
    return ids[are_allowed(row, ids)]


def is_allowed(row: Mask, token_id: int) -> bool:
    """Whether ``token_id`` is allowed; False beyond the row."""
    word = token_id >> 5
    return 0 <= word < row.size and bool((int(row[word]) >> (token_id & 31)) & 1)


def address(row: Mask) -> int:
    """``row.ctypes.data`` of a contiguous row, in a quarter of the time."""
    return ctypes.addressof(ctypes.c_char.from_buffer(row.data))


def any_allowed(row: Mask) -> bool:
    """Whether the row allows at least one id."""
    return bool(row.any())
