"""A ``ModelRunner`` over llama.cpp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from interlock.config import EngineConfig
from interlock.runners.base import (
    ForwardError,
    IntArray,
    RunnerInfo,
    SavedState,
    Selection,
    StepBatch,
)
from interlock.runners.host_memory import host_buffer
from interlock.runners.llama_cpp.batch import BatchBuffer
from interlock.runners.llama_cpp.load import load_library
from interlock.runners.llama_cpp.model import load_model
from interlock.runners.side_thread import SideThread
from interlock.runners.slots import Run, SlotTable
from interlock.sampling.base import SamplingRow
from interlock.sampling.candidates import Logits
from interlock.sampling.select import select_rows

T = TypeVar("T")

_TO_END = -1  # llama_memory_seq_rm: a negative bound is open
# An upper bound: a full slot is saved and restored in less.
_COPIED_PER_COMPUTED = 256
_REASONS = {1: "no room in the cache", 2: "aborted", -1: "an invalid batch"}


class LlamaCppRunner:
    """Many sequences in one ``llama_decode``; logits only for the rows asked for, read where the library left
    them. A slot is a sequence id with a cache of its own.

    Slots used together should be neighbours: a pass over slots with a gap between them costs one pass each side.
    After a failed pass the slots of its batch are empty.
    """

    def __init__(self, config: EngineConfig, *, max_default_context_tokens: int) -> None:
        """Raises ``InterlockError`` where the library or the model cannot be loaded."""
        library = load_library(config.llama_cpp.library)
        self._loaded = load_model(library, config, max_default_context_tokens)
        self._native = library.native
        self._messages = library.messages
        self._info = RunnerInfo(
            name=f"llama.cpp ({library.name} {library.version}): {self._loaded.name}",
            num_logits=self._loaded.num_logits,
            num_slots=config.slots,
            context_tokens=self._loaded.context_tokens,
            max_batch_tokens=config.max_batch_tokens,
            capabilities=self._loaded.capabilities,
            copy_cost_tokens=self._loaded.context_tokens // _COPIED_PER_COMPUTED,
            max_part_tokens=self._loaded.max_part_tokens,
        )
        self._table = SlotTable(
            num_slots=config.slots,
            context_tokens=self._info.context_tokens,
            max_batch_tokens=config.max_batch_tokens,
            num_logits=self._info.num_logits,
        )
        self._buffer = BatchBuffer(config.max_batch_tokens, library.structs)
        self._decode = partial(self._native.llama_decode, self._loaded.context, self._buffer.struct)
        self._side = SideThread("beside-llama")
        self._in_flight = False
        self._status: int | None = None  # of the pass in flight, once it was computed
        self._closed = False
        if self._info.capabilities.bit_identical and not self._is_alone_as_in_company():
            capabilities = replace(self._info.capabilities, bit_identical=False)
            self._info = replace(self._info, capabilities=capabilities)

    @property
    def info(self) -> RunnerInfo:
        return self._info

    def launch(self, batch: StepBatch) -> LlamaCppForward:
        self._check_idle()
        runs = self._table.check(batch)
        rows = self._buffer.fill(batch)
        self._in_flight = True
        self._status = None
        self._messages.clear()
        self._table.advance(runs)
        return LlamaCppForward(self, runs, rows)

    def truncate(self, slot: int, num_tokens: int) -> None:
        self._check_idle()
        if num_tokens not in (0, self._table.length(slot)) and not self._info.capabilities.partial_rollback:
            raise ValueError("this model's state cannot be cut")
        self._table.truncate(slot, num_tokens)
        self._remove(slot, num_tokens)

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        """Through a saved state: ``llama_memory_seq_cp`` moves all of a slot's memory, and only in the next pass, when
        what was restored meanwhile would be overwritten."""
        self._check_idle()
        if not self._info.capabilities.prefix_copy:
            raise ValueError("this model's state cannot be copied in part")
        self._table.copy_prefix(source, target, num_tokens)
        if num_tokens == 0:
            self._remove(target, 0)
            return
        state = self.save_state(source)
        if state is None or not self.restore_state(target, state, num_tokens):
            raise RuntimeError(f"the cache of slot {source} cannot be copied: {self._messages.last()}")

    def state_bytes(self, slot: int) -> int:
        return int(self._native.llama_state_seq_get_size(self._loaded.context, slot))

    def save_state(self, slot: int) -> SavedState | None:
        self._check_idle()
        self._check_saves()
        num_tokens = self._table.length(slot)
        try:
            buffer = host_buffer(self.state_bytes(slot))
        except OSError:
            return None
        native, size = self._native, buffer.nbytes
        if native.llama_state_seq_get_data(self._loaded.context, buffer.ctypes.data, size, slot) != size:
            return None
        return SavedState(num_tokens=num_tokens, num_bytes=size, data=buffer)

    def restore_state(self, slot: int, state: SavedState, num_tokens: int) -> bool:
        self._check_idle()
        self._check_saves()
        self.truncate(slot, 0)
        self._table.restore(slot, state.num_tokens, num_tokens)
        assert isinstance(state.data, np.ndarray)
        native, size = self._native, state.num_bytes
        if native.llama_state_seq_set_data(self._loaded.context, state.data.ctypes.data, size, slot) != size:
            self.truncate(slot, 0)
            return False
        self._remove(slot, num_tokens)
        return True

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loaded.close()

    def beside(self, work: Callable[[], T]) -> T:
        """Compute the pass in flight, with ``work`` beside it; called by its ``Forward``."""
        return self._side.run(work, self._compute)

    def finish(self, runs: list[Run]) -> None:
        """The end of the pass in flight; called by its ``Forward``."""
        if not self._in_flight:
            raise ValueError("select or discard was called twice")
        status = self._compute()
        self._in_flight = False
        if status != 0:
            for run in runs:
                self.truncate(run.slot, 0)
            reason = _REASONS.get(status, f"status {status}")
            raise ForwardError(f"llama_decode failed ({reason}): {self._messages.last()}")

    def logits(self, index: int) -> Logits:
        """The row of the token at ``index`` of the batch as filled; a view, valid until the next pass."""
        pointer = self._native.llama_get_logits_ith(self._loaded.context, index)
        if not pointer:
            raise ForwardError(f"no logits for token {index} of the batch: {self._messages.last()}")
        row: Logits = np.ctypeslib.as_array(pointer, shape=(self._info.num_logits,))
        return row

    def _compute(self) -> int:
        if self._status is None:
            self._status = self._decode()
        return self._status

    def _is_alone_as_in_company(self) -> bool:
        """Whether a token computed alone gives the same logits as beside another one. For some types of weights (F16)
        llama.cpp has a kernel of its own for one token, which sums in another order."""
        if self._info.max_batch_tokens < 2:
            return True
        rows = []
        for num_tokens in (1, 2):
            ids = np.arange(num_tokens, dtype=np.int32)
            first = ids[:1]
            forward = self.launch(StepBatch(token_ids=ids, positions=ids, slots=0 * ids, logits_at=first))
            self.finish(forward.runs)
            rows.append(self.logits(0).copy())
            self.truncate(0, 0)
        return bool((rows[0] == rows[1]).all())

    def _remove(self, slot: int, start: int) -> None:
        if not self._native.llama_memory_seq_rm(self._loaded.memory, slot, start, _TO_END):
            raise RuntimeError(f"the cache of slot {slot} cannot be cut at {start}")

    def _check_saves(self) -> None:
        if not self._info.capabilities.saved_states:
            raise ValueError("this model's state cannot be saved")

    def _check_idle(self) -> None:
        if self._closed:
            raise ValueError("the runner is closed")
        if self._in_flight:
            raise ValueError("a pass is in flight")


class LlamaCppForward:
    """A pass, computed beside other work or when its end is asked for, on the thread that asks."""

    __slots__ = ("_rows", "_runner", "runs")

    def __init__(self, runner: LlamaCppRunner, runs: list[Run], rows: IntArray) -> None:
        self._runner = runner
        self.runs = runs
        self._rows = rows

    def beside(self, work: Callable[[], T]) -> T:
        return self._runner.beside(work)

    def select(self, rows: Sequence[SamplingRow]) -> Selection:
        if len(rows) != len(self._rows):
            raise ValueError(f"{len(rows)} sampling rows for {len(self._rows)} rows of logits")
        self._runner.finish(self.runs)
        return Selection(choices=select_rows(map(self._runner.logits, self._rows.tolist()), rows))

    def discard(self) -> None:
        self._runner.finish(self.runs)
