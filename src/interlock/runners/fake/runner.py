"""A runner without a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from interlock.runners.base import (
    ForwardError,
    RunnerCapabilities,
    RunnerInfo,
    SavedState,
    Selection,
    StepBatch,
)
from interlock.runners.fake.logits import Logits, LogitsSource, Prefix, UniformLogits, extend_digest
from interlock.runners.slots import Run, SlotTable
from interlock.sampling.base import SamplingRow
from interlock.sampling.select import select_rows

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Faults:
    """What goes wrong; a test may change it at any time.

    poison_ids: a pass over any of these tokens fails. fail_launches: passes that fail, counted from 0.
    nan_after_ids: rows whose last token is one of these are NaN. fail_restores: no saved state can be restored.
    no_memory: no state can be saved.
    gate: a pass ends only once this is set; it fails after ``gate_timeout_s``.
    """

    poison_ids: set[int] = field(default_factory=set)
    fail_launches: set[int] = field(default_factory=set)
    nan_after_ids: set[int] = field(default_factory=set)
    fail_restores: bool = False
    no_memory: bool = False
    gate: threading.Event | None = None
    gate_timeout_s: float = 30.0


_EVERYTHING = RunnerCapabilities(partial_rollback=True, prefix_copy=True, saved_states=True, bit_identical=True)
_BYTES_PER_TOKEN = 100


class FakeRunner:
    """A ``ModelRunner`` that has everything but a model; see ``LogitsSource`` for its logits.

    capabilities: to do without some of what it can. ``num_launches`` and ``num_computed_tokens`` count.
    Strict: it raises ``ValueError`` for every call that breaks a rule of the protocol. A pass has no thread:
    it takes place inside ``select`` or ``discard``. After a failed pass the slots of its batch are empty.
    """

    def __init__(
        self,
        num_logits: int,
        *,
        logits: LogitsSource | None = None,
        slots: int = 8,
        context_tokens: int = 4096,
        max_batch_tokens: int = 512,
        faults: Faults | None = None,
        name: str = "fake",
        copy_cost_tokens: int = 0,
        capabilities: RunnerCapabilities | None = None,
    ) -> None:
        self._info = RunnerInfo(
            name=name,
            num_logits=num_logits,
            num_slots=slots,
            context_tokens=context_tokens,
            max_batch_tokens=max_batch_tokens,
            capabilities=capabilities or _EVERYTHING,
            copy_cost_tokens=copy_cost_tokens,
        )
        self._logits = logits or UniformLogits(num_logits)
        self._table = SlotTable(
            num_slots=slots,
            context_tokens=context_tokens,
            max_batch_tokens=max_batch_tokens,
            num_logits=num_logits,
        )
        self._tokens: list[list[int]] = [[] for _ in range(slots)]
        self._digests: list[list[int]] = [[0] for _ in range(slots)]  # one more than tokens
        self._in_flight = False
        self._closed = False
        self.num_computed_tokens = 0
        self.faults = faults or Faults()
        self.num_launches = 0

    @property
    def info(self) -> RunnerInfo:
        return self._info

    def launch(self, batch: StepBatch) -> FakeForward:
        self._check_idle()
        runs = self._table.check(batch)
        self._table.advance(runs)
        self.num_computed_tokens += len(batch.token_ids)
        token_ids = batch.token_ids.tolist()
        for run in runs:
            self._extend(run.slot, token_ids[run.start : run.end])
        number, self.num_launches = self.num_launches, self.num_launches + 1
        self._in_flight = True
        return FakeForward(self, batch, runs, number)

    def truncate(self, slot: int, num_tokens: int) -> None:
        self._check_idle()
        if num_tokens not in (0, self._table.length(slot)) and not self._info.capabilities.partial_rollback:
            raise ValueError("this runner's memory cannot be cut")
        self._table.truncate(slot, num_tokens)
        del self._tokens[slot][num_tokens:]
        del self._digests[slot][num_tokens + 1 :]

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        self._check_idle()
        if not self._info.capabilities.prefix_copy:
            raise ValueError("this runner's memory cannot be copied")
        self._table.copy_prefix(source, target, num_tokens)
        self._tokens[target] = self._tokens[source][:num_tokens]
        self._digests[target] = self._digests[source][: num_tokens + 1]

    def state_bytes(self, slot: int) -> int:
        return _BYTES_PER_TOKEN * self._table.length(slot)

    def save_state(self, slot: int) -> SavedState | None:
        self._check_idle()
        self._check_saves()
        num_tokens, num_bytes = self._table.length(slot), self.state_bytes(slot)
        if self.faults.no_memory:
            return None
        data = (tuple(self._tokens[slot]), tuple(self._digests[slot]))
        return SavedState(num_tokens=num_tokens, num_bytes=num_bytes, data=data)

    def restore_state(self, slot: int, state: SavedState, num_tokens: int) -> bool:
        self._check_idle()
        self._check_saves()
        self.truncate(slot, 0)
        if self.faults.fail_restores:
            return False
        self._table.restore(slot, state.num_tokens, num_tokens)
        assert isinstance(state.data, tuple)
        tokens, digests = state.data
        self._tokens[slot] = [*tokens[:num_tokens]]
        self._digests[slot] = [*digests[: num_tokens + 1]]
        return True

    def tokens(self, slot: int) -> tuple[int, ...]:
        """What ``slot`` holds; for tests."""
        return tuple(self._tokens[slot])

    def close(self) -> None:
        self._closed = True

    def finish(self, batch: StepBatch, runs: list[Run], number: int) -> list[Logits]:
        """Carry out a pass; called by its ``Forward``."""
        if not self._in_flight:
            raise ValueError("select or discard was called twice")
        self._in_flight = False
        faults = self.faults
        if faults.gate is not None and not faults.gate.wait(faults.gate_timeout_s):
            self._fail(runs, "the gate stayed closed")
        if number in faults.fail_launches or not faults.poison_ids.isdisjoint(batch.token_ids.tolist()):
            self._fail(runs, "an injected fault")
        positions, slots = batch.positions.tolist(), batch.slots.tolist()
        return [self._row(slots[index], positions[index] + 1) for index in batch.logits_at.tolist()]

    def _row(self, slot: int, length: int) -> Logits:
        tokens = self._tokens[slot]
        if tokens[length - 1] in self.faults.nan_after_ids:
            return np.full(self._info.num_logits, np.nan, dtype=np.float32)
        return self._logits.row(Prefix(tokens, length, self._digests[slot][length]))

    def _extend(self, slot: int, token_ids: list[int]) -> None:
        self._tokens[slot] += token_ids
        digests = self._digests[slot]
        for token_id in token_ids:
            digests.append(extend_digest(digests[-1], token_id))

    def _fail(self, runs: list[Run], reason: str) -> None:
        for run in runs:
            self.truncate(run.slot, 0)
        raise ForwardError(reason)

    def _check_saves(self) -> None:
        if not self._info.capabilities.saved_states:
            raise ValueError("this runner's memory cannot be saved")

    def _check_idle(self) -> None:
        if self._closed:
            raise ValueError("the runner is closed")
        if self._in_flight:
            raise ValueError("a pass is in flight")


@dataclass(frozen=True, slots=True)
class FakeForward:
    """A pass that is carried out when its result is asked for."""

    _runner: FakeRunner
    _batch: StepBatch
    _runs: list[Run]
    _number: int

    def beside(self, work: Callable[[], T]) -> T:
        return work()

    def select(self, rows: Sequence[SamplingRow]) -> Selection:
        if len(rows) != len(self._batch.logits_at):
            raise ValueError(f"{len(rows)} sampling rows for {len(self._batch.logits_at)} rows of logits")
        return Selection(choices=select_rows(self._runner.finish(self._batch, self._runs, self._number), rows))

    def discard(self) -> None:
        self._runner.finish(self._batch, self._runs, self._number)
