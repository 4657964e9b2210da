"""Where the tokens of one forward pass stand: what attention reads of the cache, and what each token may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from interlock.runners.torch.kv_cache import KVCache


@dataclass(frozen=True, slots=True)
class Grid:
    """A pass over ``rows`` slots with ``width`` tokens each, padding included; token i belongs to row i // width.

    length: tokens of each slot that are looked at. slots: int64 [rows], whose cache each row reads.
    """

    rows: int
    width: int
    length: int
    slots: torch.Tensor


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens ``start`` up to ``end`` of a pass, of one slot, of which the first stands at ``position``."""

    slot: int
    start: int
    end: int
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class PassPlan:
    """Travels through the model's layers to the attention function.

    slots, positions: int64 [tokens], where each token's keys and values are put.
    grid: the tokens are a grid; else ``stretches`` tells what they are.
    """

    cache: KVCache
    slots: torch.Tensor
    positions: torch.Tensor
    grid: Grid | None = None
    stretches: Sequence[Stretch] = ()
    _seen: dict[tuple[int, int | None], torch.Tensor] = field(default_factory=dict)

    def grid_mask(self, grid: Grid, window: int | None) -> torch.Tensor:
        """bool [rows, 1, width, length]: what each token of the grid sees. Made once a pass, for all layers."""
        return self._once(-1, window, self.positions.view(grid.rows, 1, grid.width, 1), grid.length)

    def stretch_mask(self, index: int, window: int | None) -> torch.Tensor | None:
        """bool [tokens, length] for ``stretches[index]``; ``None`` where all is seen."""
        stretch = self.stretches[index]
        length = stretch.position + stretch.end - stretch.start
        if stretch.end - stretch.start == 1 and (window is None or window >= length):
            return None
        return self._once(index, window, self.positions[stretch.start : stretch.end, None], length)

    def _once(self, key: int, window: int | None, positions: torch.Tensor, length: int) -> torch.Tensor:
        mask = self._seen.get((key, window))
        if mask is None:
            keys = torch.arange(length, device=positions.device)
            mask = keys <= positions
            if window is not None:
                mask = mask & (keys > positions - window)
            self._seen[key, window] = mask
        return mask
