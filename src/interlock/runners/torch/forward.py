"""The forward half of a step: tokens into the cache, logits out, on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from interlock.runners.base import StepBatch
from interlock.runners.slots import Run
from interlock.runners.torch.abi import ForwardArgs
from interlock.runners.torch.arena import Arena, HostArray
from interlock.runners.torch.attention import PLAN
from interlock.runners.torch.kv_cache import KVCache
from interlock.runners.torch.load import LoadedModel
from interlock.runners.torch.packing import PackedPass, pack_as_is, pack_grid
from interlock.runners.torch.plan import Grid, PassPlan, Stretch
from interlock.runners.torch.replay import Replay


@dataclass(frozen=True, slots=True)
class PassResult:
    """logits: float32 [rows of logits, num_logits] on the device, rows of padding at the end. is_static: they always lie
    in this place for a pass of this shape."""

    logits: torch.Tensor
    is_static: bool


class ForwardPasses:
    """Runs passes of one model over one cache.

    static_width: most tokens of a sequence in a step of fixed shape, 0 for none of these. compiles: run these through
    ``torch.compile``, once for each shape. pool: see ``Replay``.
    """

    def __init__(
        self, model: LoadedModel, cache: KVCache, *, static_width: int, compiles: bool, pool: Any
    ) -> None:
        self._model = model
        self._static_network = torch.compile(model.network, dynamic=False) if compiles else model.network
        self._cache = cache
        self._static_width = static_width
        self._pool = pool
        self._replays: dict[tuple[int, ...], Replay[torch.Tensor]] = {}

    def run(self, batch: StepBatch, runs: Sequence[Run]) -> PassResult:
        """Submit the pass; on a CPU also compute it."""
        with torch.inference_mode():
            packed = self._grid(batch, runs)
            if packed is not None:
                return PassResult(self._replay(packed)(_arrays(packed)), is_static=True)
            packed = pack_as_is(batch, runs)
            stretches = [] if packed.rows else _stretches(batch, runs)
            args = ForwardArgs(*Arena(_arrays(packed), self._model.device).tensors)
            return PassResult(self._compute(self._model.network, packed, args, stretches), is_static=False)

    def _grid(self, batch: StepBatch, runs: Sequence[Run]) -> PackedPass | None:
        if not self._static_width:
            return None
        return pack_grid(
            batch,
            runs,
            max_width=self._static_width,
            context_tokens=self._cache.max_tokens,
            padding_slot=self._cache.padding_slot,
        )

    def _replay(self, packed: PackedPass) -> Replay[torch.Tensor]:
        replay = self._replays.get(packed.shape)
        if replay is None:
            replay = self._replays[packed.shape] = Replay(
                _arrays(packed),
                self._model.device,
                lambda tensors: self._compute(self._static_network, packed, ForwardArgs(*tensors), ()),
                self._pool,
            )
        return replay

    def _compute(
        self, network: Any, packed: PackedPass, args: ForwardArgs, stretches: Sequence[Stretch]
    ) -> torch.Tensor:
        grid = Grid(packed.rows, packed.width, packed.length, args.row_slots) if packed.rows else None
        plan = PassPlan(self._cache, args.slots, args.positions, grid, stretches)
        output = network(
            input_ids=args.token_ids[None],
            position_ids=args.positions[None],
            use_cache=False,
            logits_to_keep=args.logits_at,
            **{PLAN: plan},
        )
        logits: torch.Tensor = output.logits[0]
        return logits.float()


def _arrays(packed: PackedPass) -> list[HostArray]:
    """In the order of ``ForwardArgs``."""
    return [packed.token_ids, packed.positions, packed.slots, packed.logits_at, packed.row_slots]


def _stretches(batch: StepBatch, runs: Sequence[Run]) -> list[Stretch]:
    return [Stretch(run.slot, run.start, run.end, int(batch.positions[run.start])) for run in runs]
