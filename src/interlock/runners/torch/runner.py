"""A ``ModelRunner`` over torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from interlock.config import EngineConfig
from interlock.errors import InterlockError
from interlock.runners.base import ForwardError, RunnerCapabilities, RunnerInfo, Selection, StepBatch
from interlock.runners.pass_thread import PassThread
from interlock.runners.slots import Run, SlotTable
from interlock.runners.threads import default_threads
from interlock.runners.torch.attention import AttentionFeatureError
from interlock.runners.torch.forward import ForwardPasses
from interlock.runners.torch.kv_cache import KVCache
from interlock.runners.torch.load import load_model
from interlock.sampling.base import SamplingRow
from interlock.sampling.select import select_rows

_CAPABILITIES = RunnerCapabilities(partial_rollback=True, prefix_copy=True, fused_selection=True)


class TorchRunner:
    """Sequences of any length in one pass; a slot is a row of the cache's tensors.

    Logits depend a little on what else is in a batch, since torch sums in another order for other shapes: in float32
    by about 1e-5. After a failed pass the slots of its batch are empty.
    """

    def __init__(self, config: EngineConfig, *, max_default_context_tokens: int) -> None:
        """Raises ``InterlockError`` where the model cannot be loaded."""
        torch.set_num_threads(config.torch.threads or default_threads())
        model = load_model(config, max_default_context_tokens)
        self._info = RunnerInfo(
            name=f"torch {torch.__version__} ({model.device}, {str(model.dtype).removeprefix('torch.')}): {model.name}",
            num_logits=model.num_logits,
            num_slots=config.slots,
            context_tokens=model.context_tokens,
            max_batch_tokens=config.max_batch_tokens,
            capabilities=_CAPABILITIES,
            copy_cost_tokens=1,
        )
        self._table = SlotTable(
            num_slots=config.slots,
            context_tokens=model.context_tokens,
            max_batch_tokens=config.max_batch_tokens,
            num_logits=model.num_logits,
        )
        self._cache = KVCache(config.slots, model.context_tokens)
        self._forward = ForwardPasses(model, self._cache)
        self._try_out(config.model)
        self._thread: PassThread[torch.Tensor] = PassThread("torch-forward")
        self._in_flight = False
        self._closed = False

    @property
    def info(self) -> RunnerInfo:
        return self._info

    def launch(self, batch: StepBatch) -> TorchForward:
        self._check_idle()
        runs = self._table.check(batch)
        self._in_flight = True
        self._thread.start(partial(self._forward.run, batch, runs))
        self._table.advance(runs)
        return TorchForward(self, runs, len(batch.logits_at))

    def truncate(self, slot: int, num_tokens: int) -> None:
        self._check_idle()
        self._table.truncate(slot, num_tokens)

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        self._check_idle()
        self._table.copy_prefix(source, target, num_tokens)
        self._cache.copy(source, target, num_tokens)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._thread.stop()

    def finish(self, runs: list[Run]) -> torch.Tensor:
        """Wait for the pass in flight; called by its ``Forward``."""
        if not self._in_flight:
            raise ValueError("select or discard was called twice")
        try:
            return self._thread.wait()
        except RuntimeError as error:
            for run in runs:
                self._table.truncate(run.slot, 0)
            raise ForwardError(f"the forward pass failed: {error}") from error
        finally:
            self._in_flight = False

    def _try_out(self, path: Path) -> None:
        """One token: it allocates the cache, and shows whether the model's attention is one that can be served."""
        zero = np.zeros(1, dtype=np.int32)
        batch = StepBatch(token_ids=zero, positions=zero, slots=zero, logits_at=zero)
        try:
            self._forward.run(batch, [Run(0, 0, 1)])
        except (AttentionFeatureError, RuntimeError, TypeError) as error:
            raise InterlockError(
                "invalid_value",
                f"{path} cannot be run with {self._info.num_slots} slots: {error}",
                param="model",
            ) from error

    def _check_idle(self) -> None:
        if self._closed:
            raise ValueError("the runner is closed")
        if self._in_flight:
            raise ValueError("a pass is in flight")


class TorchForward:
    """A pass on the runner's thread."""

    __slots__ = ("_num_rows", "_runner", "_runs")

    def __init__(self, runner: TorchRunner, runs: list[Run], num_rows: int) -> None:
        self._runner = runner
        self._runs = runs
        self._num_rows = num_rows

    def select(self, rows: Sequence[SamplingRow]) -> Selection:
        if len(rows) != self._num_rows:
            raise ValueError(f"{len(rows)} sampling rows for {self._num_rows} rows of logits")
        logits = self._runner.finish(self._runs)
        return Selection(choices=select_rows(logits.cpu().numpy(), rows))

    def discard(self) -> None:
        self._runner.finish(self._runs)
