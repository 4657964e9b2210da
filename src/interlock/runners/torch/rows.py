"""Sampling rows -> the arrays of a selection, and its result -> choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from interlock.constraints.bitmask import Mask, any_allowed
from interlock.core.sampling import SamplingParams
from interlock.runners.torch.abi import NO_DRAFT, NO_TOKEN_ALLOWED, NOT_REACHED, SAMPLING_FAILED, RowMode
from interlock.runners.torch.arena import HostArray
from interlock.runners.torch.packing import power_of_two
from interlock.sampling.base import Choice, SamplingRow
from interlock.sampling.select import GREEDY_BELOW, UNREACHED

_PENALTIES = ("frequency_penalty", "presence_penalty", "repetition_penalty")
_ON_DEVICE = {"temperature", "top_p", "top_k", "min_p", "seed", "logit_bias", *_PENALTIES}
_CHOICES = {
    NOT_REACHED: UNREACHED,
    NO_TOKEN_ALLOWED: Choice(token_id=-1, error="no_token_allowed"),
    SAMPLING_FAILED: Choice(token_id=-1, error="sampling_failed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """masks: by row. chains: rows, each list one sequence. on_host: chains whose logits are needed on the host."""

    modes: list[int]
    masks: dict[int, Mask]
    chains: list[list[int]]
    on_host: list[list[int]] = field(default_factory=list)

    @property
    def num_device_rows(self) -> int:
        return sum(map(len, self.chains))


def plan_rows(rows: Sequence[SamplingRow], *, on_device: bool) -> RowPlan:
    """on_device: whether the device chooses where it can; else all rows are the host's."""
    plan = RowPlan(modes=[0] * len(rows), masks={}, chains=[])
    chain: list[int] = []
    for index, row in enumerate(rows):
        plan.modes[index] = mode = _mode(row) if on_device else 0
        if mode & RowMode.MASKED and row.mask is not None:
            plan.masks[index] = row.mask
        chain.append(index)
        if row.draft is None or index == len(rows) - 1:
            is_hosts = not on_device or any(_is_hosts(rows[one]) for one in chain)
            (plan.on_host if is_hosts else plan.chains).append(chain)
            chain = []
    for index in (one for chain in plan.on_host for one in chain):
        plan.masks.pop(index, None)
        plan.modes[index] = 0
    return plan


def select_arrays(
    rows: Sequence[SamplingRow], plan: RowPlan, num_rows: int, *, static_drafts: int | None
) -> list[HostArray]:
    """Those of ``SelectArgs`` but the masks, in its order, for ``num_rows`` rows of logits.

    static_drafts: K, where shapes shall be few; ``None``: shapes as they come.
    """
    is_static = static_drafts is not None
    num_drafts = max(len(chain) for chain in plan.chains) - 1
    if static_drafts is not None and num_drafts:
        num_drafts = max(static_drafts, num_drafts)
    num_chains = power_of_two(len(plan.chains)) if is_static else len(plan.chains)
    chains = np.zeros((num_chains, num_drafts + 1), dtype=np.int64)
    drafts = np.full((num_chains, num_drafts), NO_DRAFT, dtype=np.int64)
    counts = np.zeros(num_chains, dtype=np.int64)
    for index, chain in enumerate(plan.chains):
        chains[index, : len(chain)] = chain
        behind = [_draft(rows[one]) for one in chain[:-1]]
        drafts[index, : len(behind)] = behind
        counts[index] = behind.index(NO_DRAFT) if NO_DRAFT in behind else len(behind)
    modes = np.zeros(num_rows, dtype=np.int64)
    modes[: len(rows)] = plan.modes
    return [
        modes,
        *_parameters(rows, num_rows),
        chains,
        drafts,
        counts,
        _rows_of(modes, RowMode.MASKED, is_static),
        _rows_of(modes, RowMode.SAMPLED, is_static),
        np.flatnonzero(modes & RowMode.TRUNCATED)[:1],
    ]


def choices_of(tokens: NDArray[np.int64], plan: RowPlan, choices: list[Choice]) -> None:
    """Write the choices of the device's chains into ``choices``. tokens: int64 [chains, K + 1]."""
    for chain, chosen in zip(plan.chains, tokens.tolist(), strict=False):
        for index, token_id in zip(chain, chosen, strict=False):
            choices[index] = Choice(token_id=token_id) if token_id >= 0 else _CHOICES[token_id]


def _mode(row: SamplingRow) -> int:
    params, mode = row.params, RowMode(0)
    if row.mask is not None:
        mode |= RowMode.MASKED if any_allowed(row.mask) else RowMode.REFUSED
    if params.temperature >= GREEDY_BELOW:
        mode |= RowMode.SAMPLED
        if params.top_k or params.top_p < 1.0 or params.min_p > 0.0:
            mode |= RowMode.TRUNCATED
    return int(mode)


def _is_hosts(row: SamplingRow) -> bool:
    """Log probabilities and traces are made from the logits, on the host."""
    return row.trace or not _is_known(row.params)


@lru_cache(maxsize=4096)
def _is_known(params: SamplingParams) -> bool:
    """Nothing is asked for but what the device does, so that no parameter is ever passed over."""
    return all(getattr(params, one.name) == one.default for one in fields(params) if one.name not in _ON_DEVICE)


def _draft(row: SamplingRow) -> int:
    return NO_DRAFT if row.draft is None else max(row.draft, NO_DRAFT)


def _parameters(rows: Sequence[SamplingRow], num_rows: int) -> list[HostArray]:
    temperatures, top_ps, min_ps = np.ones(num_rows), np.ones(num_rows), np.zeros(num_rows)
    top_ks, seeds, positions = (np.zeros(num_rows, dtype=np.int64) for _ in range(3))
    unsigned = seeds.view(np.uint64)
    for index, row in enumerate(rows):
        params = row.params
        positions[index] = row.position
        if params.temperature >= GREEDY_BELOW:
            temperatures[index] = 1.0 / params.temperature
            top_ks[index], top_ps[index], min_ps[index] = params.top_k, params.top_p, params.min_p
            unsigned[index] = params.seed % (1 << 64)
    return [temperatures, top_ks, top_ps, min_ps, seeds, positions]


def _rows_of(modes: NDArray[np.int64], mode: RowMode, is_static: bool) -> NDArray[np.int64]:
    """Which rows have ``mode``; in fixed shapes one of them several times, or simply all rows."""
    found = np.flatnonzero(modes & mode)
    if not is_static or not len(found):
        return found
    size = power_of_two(len(found))
    if size >= len(modes):
        return np.arange(len(modes))
    return np.concatenate([np.full(size - len(found), found[0]), found])
