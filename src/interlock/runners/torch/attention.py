"""The attention function that transformers' models call: it keeps keys and values in slots of the cache.

Registered under a name of its own, so that any model class whose attention can be exchanged works here, and no mask is
made by the library: the plan of the pass makes it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interlock.runners.torch.plan import Grid, PassPlan

NAME = "interlock"
PLAN = "interlock_plan"
"""Name of the argument of the model's forward that carries the ``PassPlan``."""

_HARMLESS = frozenset({PLAN, "position_ids", "cache_position", "dropout"})


class AttentionFeatureError(Exception):
    """A model asks its attention for something that is not done here."""


def register() -> None:
    """Make ``NAME`` an attention implementation of transformers. May be repeated."""
    ALL_ATTENTION_FUNCTIONS.register(NAME, slotted_attention)


def slotted_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """query [1, heads, tokens, dim], key and value [1, kv heads, tokens, dim] of the pass -> [1, tokens, heads, dim].

    s_aux: a logit for each head that takes part in the softmax and stands for nothing (gpt-oss).
    Raises ``AttentionFeatureError``.
    """
    plan = others.get(PLAN)
    if plan is None:
        raise AttentionFeatureError("the model does not hand the plan of the pass to its attention")
    _check(module, others)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    held = plan.cache.write(
        module.layer_idx, key[0].transpose(0, 1), value[0].transpose(0, 1), plan.slots, plan.positions
    )
    if plan.grid is not None:
        return _grid(plan, plan.grid, query, held, sliding_window, (scale, softcap, s_aux)), None
    return _stretches(plan, query, held, sliding_window, (scale, softcap, s_aux)), None


_Held = tuple[torch.Tensor, torch.Tensor]
_Scoring = tuple[float, float | None, torch.Tensor | None]


def _grid(
    plan: PassPlan, grid: Grid, query: torch.Tensor, held: _Held, window: int | None, scoring: _Scoring
) -> torch.Tensor:
    """All rows at once, of one shape: what a graph can hold."""
    heads, dim = query.shape[1], query.shape[-1]
    rows = query[0].view(heads, grid.rows, grid.width, dim).transpose(0, 1)
    keys, values = (one[:, :, : grid.length].index_select(0, grid.slots) for one in held)
    seen = _explicit(rows, keys, values, plan.grid_mask(grid, window), scoring)
    return seen.transpose(1, 2).reshape(1, grid.rows * grid.width, heads, -1)


def _stretches(
    plan: PassPlan, query: torch.Tensor, held: _Held, window: int | None, scoring: _Scoring
) -> torch.Tensor:
    """One slot after the other, each over what it holds."""
    scale, softcap, sink = scoring
    parts = []
    for index, stretch in enumerate(plan.stretches):
        length = stretch.position + stretch.end - stretch.start
        rows = query[:, :, stretch.start : stretch.end]
        keys, values = (one[stretch.slot : stretch.slot + 1, :, :length] for one in held)
        mask = plan.stretch_mask(index, window)
        if softcap is not None or sink is not None:
            parts.append(_explicit(rows, keys, values, mask, scoring))
        else:
            parts.append(
                scaled_dot_product_attention(
                    rows,
                    keys,
                    values,
                    attn_mask=mask,
                    scale=scale,
                    enable_gqa=rows.shape[1] != keys.shape[1],
                )
            )
    return torch.cat(parts, dim=2).transpose(1, 2)


def _explicit(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scoring: _Scoring,
) -> torch.Tensor:
    """Attention in the open: query [rows, heads, width, dim], keys and values [rows, kv heads, length, dim] ->
    [rows, heads, width, dim]. The query heads of a key head are stacked, so that nothing is repeated."""
    scale, softcap, sink = scoring
    num_rows, heads, width, _ = query.shape
    kv_heads, length = keys.shape[1], keys.shape[2]
    stacked = query.reshape(num_rows, kv_heads, heads // kv_heads * width, -1)
    scores = torch.matmul(stacked, keys.transpose(-1, -2)).float() * scale
    scores = scores.view(num_rows, heads, width, length)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = _softmax(scores, sink).to(values.dtype)
    return torch.matmul(weights.view(num_rows, kv_heads, -1, length), values).view(num_rows, heads, width, -1)


def _softmax(scores: torch.Tensor, sink: torch.Tensor | None) -> torch.Tensor:
    if sink is None:
        return torch.softmax(scores, dim=-1)
    column = sink.float().view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, column], dim=-1), dim=-1)[..., :-1]


def _check(module: Any, others: dict[str, Any]) -> None:
    if not getattr(module, "is_causal", True):
        raise AttentionFeatureError("the model's attention looks ahead")
    unknown = sorted(
        name for name, value in others.items() if name not in _HARMLESS and isinstance(value, torch.Tensor)
    )
    if unknown:
        raise AttentionFeatureError(f"the model's attention takes {', '.join(unknown)}")
