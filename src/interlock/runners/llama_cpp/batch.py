"""One ``llama_batch``, allocated once and filled for each step."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from interlock.runners.base import IntArray, StepBatch
from interlock.runners.llama_cpp.abi import Structs


class BatchBuffer:
    """Arrays that a ``llama_batch`` points into. Each token belongs to exactly one sequence."""

    def __init__(self, max_tokens: int, structs: Structs) -> None:
        self._token = np.zeros(max_tokens, dtype=np.int32)
        self._position = np.zeros(max_tokens, dtype=np.int32)
        self._slot = np.zeros(max_tokens, dtype=np.int32)
        self._num_slots = np.ones(max_tokens, dtype=np.int32)
        self._wanted = np.zeros(max_tokens, dtype=np.int8)
        # seq_id is an array of pointers, one to each token's slot
        self._slot_pointers = self._slot.ctypes.data + self._slot.itemsize * np.arange(
            max_tokens, dtype=np.uintp
        )
        self.struct = structs.batch()
        int32, int8 = ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int8)
        self._point("token", self._token, int32)
        self._point("pos", self._position, int32)
        self._point("n_seq_id", self._num_slots, int32)
        self._point("seq_id", self._slot_pointers, ctypes.POINTER(int32))
        self._point("logits", self._wanted, int8)

    def fill(self, batch: StepBatch) -> IntArray:
        """Copy a step in, slots in rising order, which is what the library can put into one pass.

        Returns the index in the batch as filled of each of ``batch.logits_at``.
        """
        slots, num_tokens = batch.slots, len(batch.slots)
        logits_at = batch.logits_at
        if (slots[1:] < slots[:-1]).any():
            order = np.argsort(slots, kind="stable")
            self._token[:num_tokens] = batch.token_ids[order]
            self._position[:num_tokens] = batch.positions[order]
            self._slot[:num_tokens] = slots[order]
            places = np.empty(num_tokens, dtype=np.int32)
            places[order] = np.arange(num_tokens, dtype=np.int32)
            logits_at = places[logits_at]
        else:
            self._token[:num_tokens] = batch.token_ids
            self._position[:num_tokens] = batch.positions
            self._slot[:num_tokens] = slots
        self._wanted[:num_tokens] = 0
        self._wanted[logits_at] = 1
        self.struct.n_tokens = num_tokens
        return logits_at

    def _point(self, name: str, array: np.ndarray[Any, Any], pointer_type: Any) -> None:
        setattr(self.struct, name, ctypes.cast(array.ctypes.data, pointer_type))
