"""The selection half of a step: masks, choices, acceptance of drafts, on the device.

It says what ``sampling/select.py`` says, which is the reference. Greedy choices are the same always. Sampled ones use the
same random number and the same sums; the exponentials of two libraries may differ in the last bit, so where the number
falls within about 1e-7 of the border between two tokens, the other one may be chosen.
"""

from __future__ import annotations

import torch

from interlock.runners.torch.abi import (
    NO_TOKEN_ALLOWED,
    NOT_REACHED,
    SAMPLING_FAILED,
    RowMode,
    SelectArgs,
    StepResult,
)
from interlock.runners.torch.random import uniform


def select(logits: torch.Tensor, args: SelectArgs, vocab_size: int) -> StepResult:
    """logits: float32 [R, at least vocab_size], written to."""
    values = logits[:, :vocab_size]
    _apply_masks(values, args)
    best = values.max(dim=-1)
    ids = best.indices
    if args.sampled.numel():
        is_sampled = (args.modes[args.sampled] & RowMode.SAMPLED) != 0
        chosen = torch.where(is_sampled, _sample(values, best.values, args), ids[args.sampled])
        ids = ids.index_copy(0, args.sampled, chosen)
    ids = torch.where(best.values.isfinite(), ids, _why_not(best.values, args.modes))
    ids = torch.where((args.modes & RowMode.REFUSED) != 0, NO_TOKEN_ALLOWED, ids)
    return _accepted(ids, args)


def _apply_masks(values: torch.Tensor, args: SelectArgs) -> None:
    if not args.masked.numel():
        return
    masks = _picked(args.masks[: len(values)], args.masked)
    shifts = torch.arange(8, dtype=torch.uint8, device=values.device)
    bits = (masks.view(torch.uint8)[:, :, None] >> shifts) & 1
    allowed = bits.view(len(masks), -1)[:, : values.shape[1]].bool()
    if len(args.masked) == len(values):
        values.masked_fill_(~allowed, -torch.inf)
    else:
        values[args.masked] = values[args.masked].masked_fill(~allowed, -torch.inf)


def _why_not(top: torch.Tensor, modes: torch.Tensor) -> torch.Tensor:
    """What to say of rows whose largest value is no number to choose by."""
    forbidden = (top == -torch.inf) & ((modes & RowMode.MASKED) != 0)
    return torch.where(forbidden, NO_TOKEN_ALLOWED, SAMPLING_FAILED)


def _sample(values: torch.Tensor, top: torch.Tensor, args: SelectArgs) -> torch.Tensor:
    """The ids that the rows of ``args.sampled`` fall on: inverse CDF over what the cuts leave, in order of id."""
    rows = _picked(values, args.sampled)
    inverse = args.temperatures[args.sampled, None].float()
    weights = torch.exp((rows - top[args.sampled, None]) * inverse)
    if args.truncated.numel():
        weights = torch.where(_kept(rows, weights, args), weights, 0.0)
    mass = weights.double().cumsum(dim=-1)
    target = uniform(args.seeds[args.sampled], args.positions[args.sampled]) * mass[:, -1]
    reached = (mass <= target[:, None]).sum(dim=-1)
    places = torch.arange(weights.shape[1], device=weights.device)
    last = torch.where(weights > 0, places, 0).max(dim=-1).values
    return torch.minimum(reached, last)


def _kept(rows: torch.Tensor, weights: torch.Tensor, args: SelectArgs) -> torch.Tensor:
    """bool [n, vocab]: top-k, then top-p, then min-p, each on what the one before left; of equals the lower id is first."""
    top_ks, top_ps, min_ps = (one[args.sampled, None] for one in (args.top_ks, args.top_ps, args.min_ps))
    order = torch.sort(rows, dim=-1, descending=True, stable=True).indices
    ranked = weights.gather(1, order)
    rank = torch.arange(rows.shape[1], device=rows.device)
    kept = (top_ks == 0) | (rank < top_ks)
    mass = torch.where(kept, ranked, 0.0).double().cumsum(dim=-1)
    before = torch.cat([torch.zeros_like(mass[:, :1]), mass[:, :-1]], dim=-1)
    kept = kept & ((top_ps >= 1.0) | (before < top_ps * mass[:, -1:])) & (ranked >= min_ps.float())
    return torch.zeros_like(kept).scatter(1, order, kept)


def _accepted(ids: torch.Tensor, args: SelectArgs) -> StepResult:
    """A draft is right exactly where it is the choice before it; behind the first wrong one nothing is reached."""
    choices = ids[args.chains]
    num_drafts = args.drafts.shape[1]
    places = torch.arange(num_drafts + 1, device=ids.device)
    right = (choices[:, :-1] == args.drafts) & (places[:-1] < args.draft_counts[:, None])
    num_right = right.long().cumprod(dim=-1).sum(dim=-1)
    tokens = torch.where(places <= num_right[:, None], choices, NOT_REACHED)
    return StepResult(tokens, num_right + 1)


def _picked(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Rows of ``values``; without a copy where they are all of them, which as many as there are always are."""
    return values if len(rows) == len(values) else values.index_select(0, rows)
