"""A ``ModelRunner`` over torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from interlock.config import MAX_SPECULATIVE_TOKENS, EngineConfig
from interlock.errors import InterlockError
from interlock.runners.base import (
    ForwardError,
    RunnerCapabilities,
    RunnerInfo,
    SavedState,
    Selection,
    StepBatch,
)
from interlock.runners.host_memory import host_buffer
from interlock.runners.slots import Run, SlotTable
from interlock.runners.threads import default_threads
from interlock.runners.torch.attention import AttentionFeatureError
from interlock.runners.torch.forward import ForwardPasses, PassResult
from interlock.runners.torch.kv_cache import KVCache
from interlock.runners.torch.load import LoadedModel, load_model
from interlock.runners.torch.packing import power_of_two
from interlock.runners.torch.replay import graph_pool
from interlock.runners.torch.selector import Selector, chooses_well
from interlock.runners.torch.submission import passes_for
from interlock.sampling.base import SamplingRow

T = TypeVar("T")
_DEVICE_LOST: tuple[type[BaseException], ...] = tuple(filter(None, [getattr(torch, "AcceleratorError", None)]))
_CAPABILITIES = RunnerCapabilities(
    partial_rollback=True, prefix_copy=True, saved_states=True, fused_selection=True
)


class TorchRunner:
    """Sequences of any length in one pass; a slot is a row of the cache's tensors. A step is one submission (``abi``):
    pass, masks, choices and drafts are the device's, and token ids come back.

    Logits depend a little on what else is in a batch, since torch sums in another order for other shapes: in float32
    by about 1e-5. After a failed pass the slots of its batch are empty.
    """

    def __init__(self, config: EngineConfig, *, max_default_context_tokens: int) -> None:
        """Raises ``InterlockError`` where the model cannot be loaded."""
        torch.set_num_threads(config.torch.threads or default_threads(config.torch.sharers))
        model = load_model(config, max_default_context_tokens)
        self._info = _info(config, model)
        self._table = SlotTable(
            num_slots=config.slots,
            context_tokens=model.context_tokens,
            max_batch_tokens=config.max_batch_tokens,
            num_logits=model.num_logits,
        )
        is_cuda = model.device.type == "cuda"
        is_static = (
            is_cuda and not model.looks_back
            if config.torch.static_shapes is None
            else config.torch.static_shapes
        )
        if is_cuda and is_static and model.looks_back:
            raise InterlockError("invalid_value", f"no graph can hold {model.name}: {model.looks_back}")
        num_drafts = (
            MAX_SPECULATIVE_TOKENS if config.speculative is None else config.speculative.num_speculative_tokens
        )
        if config.torch.compile and not is_static:
            raise InterlockError("invalid_value", "torch.compile needs steps of fixed shapes: --static-shapes")
        pool = graph_pool(model.device)
        self._cache = KVCache(config.slots, model.context_tokens)
        self._forward = ForwardPasses(
            model,
            self._cache,
            static_width=num_drafts + 1 if is_static else 0,
            compiles=config.torch.compile,
            pool=pool,
        )
        self._selector = Selector(
            power_of_two(config.max_batch_tokens),
            model.device,
            on_device=chooses_well(model.device) if config.torch.fused is None else config.torch.fused,
            static_drafts=num_drafts if is_static else None,
            pool=pool,
        )
        self._try_out(config.model)
        self._passes = passes_for(model.device)
        self._in_flight = False
        self._closed = False

    @property
    def info(self) -> RunnerInfo:
        return self._info

    def launch(self, batch: StepBatch) -> TorchForward:
        self._check_idle()
        runs = self._table.check(batch)
        self._in_flight = True
        self._passes.start(partial(self._forward.run, batch, runs))
        self._table.advance(runs)
        return TorchForward(self, runs, len(batch.logits_at))

    def truncate(self, slot: int, num_tokens: int) -> None:
        self._check_idle()
        self._table.truncate(slot, num_tokens)

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        self._check_idle()
        self._table.copy_prefix(source, target, num_tokens)
        self._cache.copy(source, target, num_tokens)

    def state_bytes(self, slot: int) -> int:
        return self._cache.state_bytes(self._table.length(slot))

    def save_state(self, slot: int) -> SavedState | None:
        self._check_idle()
        num_tokens = self._table.length(slot)
        try:
            buffer = torch.from_numpy(host_buffer(self.state_bytes(slot)))
        except OSError:
            return None
        self._cache.save(slot, num_tokens, buffer)
        return SavedState(num_tokens=num_tokens, num_bytes=buffer.nbytes, data=buffer)

    def restore_state(self, slot: int, state: SavedState, num_tokens: int) -> bool:
        self._check_idle()
        self._table.restore(slot, state.num_tokens, num_tokens)
        assert isinstance(state.data, torch.Tensor)
        self._cache.restore(slot, state.num_tokens, state.data)
        return True

    def close(self) -> None:
        self._closed = True

    def beside(self, work: Callable[[], T]) -> T:
        """``work`` while the pass runs; called by its ``Forward``."""
        return self._passes.beside(work)

    def select(self, runs: list[Run], rows: Sequence[SamplingRow]) -> Selection:
        """The end of a pass whose logits are wanted; called by its ``Forward``."""
        self._check_in_flight()
        try:
            prepared = self._selector.prepare(rows)
        except ValueError:
            self.discard(runs)
            raise
        except RuntimeError as error:
            self.discard(runs)
            raise self._failure(runs, error) from error
        result = self._finished(runs)
        try:
            return Selection(choices=self._selector.select(result, prepared))
        except RuntimeError as error:
            raise self._failure(runs, error) from error

    def discard(self, runs: list[Run]) -> None:
        """The end of a pass whose logits nobody wants; called by its ``Forward``."""
        self._check_in_flight()
        self._finished(runs)
        try:
            self._passes.synchronize()
        except RuntimeError as error:
            raise self._failure(runs, error) from error

    def _finished(self, runs: list[Run]) -> PassResult:
        try:
            return self._passes.wait()
        except RuntimeError as error:
            raise self._failure(runs, error) from error
        finally:
            self._in_flight = False

    def _failure(self, runs: list[Run], error: RuntimeError) -> BaseException:
        """A pass that failed leaves its slots empty. An accelerator that failed, other than for want of memory, does
        nothing more for this process: the worker ends, and its requests go on in a new one."""
        if isinstance(error, _DEVICE_LOST):
            return SystemExit(f"the device failed: {error}")
        for run in runs:
            self._table.truncate(run.slot, 0)
        return ForwardError(f"the forward pass failed: {error}")

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

    def _check_in_flight(self) -> None:
        if not self._in_flight:
            raise ValueError("select or discard was called twice")


class TorchForward:
    """A pass that was submitted."""

    __slots__ = ("_num_rows", "_runner", "_runs")

    def __init__(self, runner: TorchRunner, runs: list[Run], num_rows: int) -> None:
        self._runner = runner
        self._runs = runs
        self._num_rows = num_rows

    def beside(self, work: Callable[[], T]) -> T:
        return self._runner.beside(work)

    def select(self, rows: Sequence[SamplingRow]) -> Selection:
        if len(rows) != self._num_rows:
            raise ValueError(f"{len(rows)} sampling rows for {self._num_rows} rows of logits")
        return self._runner.select(self._runs, rows)

    def discard(self) -> None:
        self._runner.discard(self._runs)


def _info(config: EngineConfig, model: LoadedModel) -> RunnerInfo:
    dtype = str(model.dtype).removeprefix("torch.")
    return RunnerInfo(
        name=f"torch {torch.__version__} ({model.device}, {dtype}): {model.name}",
        num_logits=model.num_logits,
        num_slots=config.slots,
        context_tokens=model.context_tokens,
        max_batch_tokens=config.max_batch_tokens,
        capabilities=_CAPABILITIES,
        copy_cost_tokens=1,
    )
