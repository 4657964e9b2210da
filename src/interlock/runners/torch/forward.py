"""The forward half of a step: tokens into the cache, logits out, on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from interlock.runners.base import StepBatch
from interlock.runners.slots import Run
from interlock.runners.torch.attention import PLAN
from interlock.runners.torch.kv_cache import KVCache
from interlock.runners.torch.load import LoadedModel
from interlock.runners.torch.packing import PackedPass, pack_as_is
from interlock.runners.torch.plan import Grid, PassPlan, Stretch


class ForwardPasses:
    """Runs passes of one model over one cache."""

    def __init__(self, model: LoadedModel, cache: KVCache) -> None:
        self._model = model
        self._cache = cache

    def run(self, batch: StepBatch, runs: Sequence[Run]) -> torch.Tensor:
        """Logits float32 [rows of logits, num_logits] on the device."""
        packed = pack_as_is(batch, runs)
        stretches = [] if packed.rows else _stretches(batch, runs)
        with torch.inference_mode():
            return self._compute(packed, self._to_device(packed), stretches)

    def _to_device(self, packed: PackedPass) -> tuple[torch.Tensor, ...]:
        arrays = (packed.token_ids, packed.positions, packed.slots, packed.logits_at, packed.row_slots)
        return tuple(torch.from_numpy(one).to(self._model.device, non_blocking=True) for one in arrays)

    def _compute(
        self, packed: PackedPass, arrays: tuple[torch.Tensor, ...], stretches: Sequence[Stretch]
    ) -> torch.Tensor:
        token_ids, positions, slots, logits_at, row_slots = arrays
        grid = Grid(packed.rows, packed.width, packed.length, row_slots) if packed.rows else None
        plan = PassPlan(self._cache, slots, positions, grid, stretches)
        output = self._model.network(
            input_ids=token_ids[None],
            position_ids=positions[None],
            use_cache=False,
            logits_to_keep=logits_at,
            **{PLAN: plan},
        )
        logits: torch.Tensor = output.logits[0].float()
        return logits


def _stretches(batch: StepBatch, runs: Sequence[Run]) -> list[Stretch]:
    return [Stretch(run.slot, run.start, run.end, int(batch.positions[run.start])) for run in runs]
