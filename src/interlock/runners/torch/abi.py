"""The step ABI, version 1: what a step is called with, in this order, whatever the requests in it ask for.

A step has two halves that are submitted one behind the other, with no wait between them: the forward pass over
``ForwardArgs``, and the selection over its logits and ``SelectArgs``. Masks are made while the first one runs, so they
belong to the second. All tensors are on the device; shapes are in tokens (T), rows of logits (R), chains (C), K drafts.
"""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

import torch

STEP_ABI_VERSION = 1

NOT_REACHED, NO_TOKEN_ALLOWED, SAMPLING_FAILED = -1, -2, -3
"""What stands in ``StepResult.tokens`` where there is no token."""
NO_DRAFT = -1


class RowMode(IntFlag):
    """The mode word of a row. 0: the largest logit of all; the row's mask is then not looked at.

    REFUSED: the mask allowed nothing and was not staged.
    """

    MASKED = 1
    SAMPLED = 2
    TRUNCATED = 4
    REFUSED = 8


class ForwardArgs(NamedTuple):
    """token_ids, positions: of each token. slots: where its keys and values go. logits_at: the tokens whose logits are
    wanted. row_slots: of a grid, whose cache each row of tokens reads; T is then rows * width."""

    token_ids: torch.Tensor  # int64 [T]
    positions: torch.Tensor  # int64 [T]
    slots: torch.Tensor  # int64 [T]
    logits_at: torch.Tensor  # int64 [R]
    row_slots: torch.Tensor  # int64 [rows of the grid]


class SelectArgs(NamedTuple):
    """masks: bit 1 = allowed (``constraints/bitmask.py``), rows that are not MASKED hold ones. temperatures are inverted.
    positions: of the output tokens; randomness is a function of (seed, position). chains: the rows of one sequence in
    order, each behind the draft before it; padding points anywhere. draft_counts: drafts that a mask stands behind.
    masked, sampled: which rows to look at for these modes, rising, so that others cost nothing; they may name rows of other
    modes, and one row twice if they name fewer than all. truncated: empty where no row has that mode."""

    masks: torch.Tensor  # int32 [R, ceil(vocab/32)]
    modes: torch.Tensor  # int64 [R]
    temperatures: torch.Tensor  # float64 [R]
    top_ks: torch.Tensor  # int64 [R], 0 is off
    top_ps: torch.Tensor  # float64 [R]
    min_ps: torch.Tensor  # float64 [R]
    seeds: torch.Tensor  # int64 [R]
    positions: torch.Tensor  # int64 [R]
    chains: torch.Tensor  # int64 [C, K + 1]
    drafts: torch.Tensor  # int64 [C, K], NO_DRAFT is padding
    draft_counts: torch.Tensor  # int64 [C]
    masked: torch.Tensor  # int64 [n]
    sampled: torch.Tensor  # int64 [n]
    truncated: torch.Tensor  # int64 [0 or 1]


class StepResult(NamedTuple):
    """tokens: the choices of each chain as far as its drafts were right, then NOT_REACHED. counts: how many there are,
    at least 1."""

    tokens: torch.Tensor  # int64 [C, K + 1]
    counts: torch.Tensor  # int64 [C]
