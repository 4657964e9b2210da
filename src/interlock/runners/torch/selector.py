"""Runs selections: what is wanted of the rows is worked out while the forward pass runs, the rest on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from interlock.runners.torch.abi import SelectArgs
from interlock.runners.torch.adjust import adjust, adjustments
from interlock.runners.torch.arena import Arena, HostArray
from interlock.runners.torch.forward import PassResult
from interlock.runners.torch.replay import Replay
from interlock.runners.torch.rows import RowPlan, choices_of, plan_rows, select_arrays
from interlock.runners.torch.selection import select
from interlock.runners.torch.staging import MaskStage
from interlock.sampling.base import Choice, SamplingRow
from interlock.sampling.select import UNREACHED, select_rows


@dataclass(frozen=True, slots=True)
class Prepared:
    """A selection whose logits are not there yet. masks: on their way to the device."""

    rows: Sequence[SamplingRow]
    plan: RowPlan
    masks: torch.Tensor | None
    adjustments: list[HostArray]


class Selector:
    """Selections over the logits of one runner.

    on_device: choose there what can be chosen there; else all rows are left to the reference sampler on the host.
    static_drafts: most drafts of a sequence in a step of fixed shape; ``None`` without such. pool: see ``Replay``.
    """

    def __init__(
        self, max_rows: int, device: torch.device, *, on_device: bool, static_drafts: int | None, pool: Any
    ) -> None:
        self._max_rows = max_rows
        self._device = device
        self._on_device = on_device
        self._static_drafts = static_drafts
        self._pool = pool
        self._stage: MaskStage | None = None
        self._vocab_size = 0
        self._replays: dict[tuple[Any, ...], Replay[torch.Tensor]] = {}

    def prepare(self, rows: Sequence[SamplingRow]) -> Prepared:
        """Stage the masks. Raises ``ValueError`` for rows that do not fit together."""
        if len({row.vocab_size for row in rows}) > 1:
            raise ValueError("rows of several vocabularies")
        plan = plan_rows(rows, on_device=self._on_device)
        if not plan.chains:
            return Prepared(rows, plan, None, [])
        masks = self._stage_of(rows[0].vocab_size).stage(plan.masks)
        chosen = [index for chain in plan.chains for index in chain]
        return Prepared(rows, plan, masks, adjustments(rows, chosen))

    def select(self, result: PassResult, prepared: Prepared) -> tuple[Choice, ...]:
        """A choice for each row; waits for the device. Raises ``ValueError`` where the logits are too narrow."""
        rows, plan = prepared.rows, prepared.plan
        choices = [UNREACHED] * len(rows)
        if rows and result.logits.shape[1] < rows[0].vocab_size:
            raise ValueError(f"{result.logits.shape[1]} logits for a vocabulary of {rows[0].vocab_size}")
        with torch.inference_mode():
            _choose_on_host(result.logits, prepared, choices)
            if prepared.masks is not None:
                choices_of(self._submit(result, prepared, prepared.masks).cpu().numpy(), plan, choices)
        return tuple(choices)

    def _submit(self, result: PassResult, prepared: Prepared, masks: torch.Tensor) -> torch.Tensor:
        logits = result.logits
        if prepared.adjustments:
            adjust(logits, prepared.adjustments)
        static_drafts = self._static_drafts if result.is_static else None
        arrays = select_arrays(prepared.rows, prepared.plan, len(logits), static_drafts=static_drafts)
        if static_drafts is None or self._device.type != "cuda":
            return self._tokens(logits, masks, Arena(arrays, self._device).tensors)
        # A graph reads and writes fixed places, so those are part of what it is.
        key = (logits.data_ptr(), logits.shape, masks.data_ptr(), *(array.shape for array in arrays))
        replay = self._replays.get(key)
        if replay is None:
            replay = self._replays[key] = Replay(
                arrays, self._device, lambda tensors: self._tokens(logits, masks, tensors), self._pool
            )
        return replay(arrays)

    def _tokens(self, logits: torch.Tensor, masks: torch.Tensor, tensors: list[torch.Tensor]) -> torch.Tensor:
        return select(logits, SelectArgs(masks, *tensors), self._vocab_size).tokens

    def _stage_of(self, vocab_size: int) -> MaskStage:
        if self._stage is None or vocab_size != self._vocab_size:
            self._vocab_size = vocab_size
            self._replays.clear()
            self._stage = MaskStage(self._max_rows, vocab_size, self._device)
        return self._stage


def _choose_on_host(logits: torch.Tensor, prepared: Prepared, choices: list[Choice]) -> None:
    """Bring the rows that the host needs, all at once, and choose from them."""
    rows, chains = prepared.rows, prepared.plan.on_host
    wanted = [index for chain in chains for index in chain]
    if not wanted:
        return
    values = (logits[: len(rows)] if len(wanted) == len(rows) else logits[wanted]).cpu().numpy()
    found = select_rows(values, [rows[index] for index in wanted])
    for index, choice in zip(wanted, found, strict=True):
        choices[index] = choice


def chooses_well(device: torch.device) -> bool:
    """Whether ``device`` is for choosing: a CPU has the logits on the host already and takes 5 to 15 times as long as the
    reference, and Apple's devices have no float64, which probabilities are summed in."""
    return device.type not in ("cpu", "mps")
