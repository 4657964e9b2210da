"""Where a sequence finds most of its tokens computed already. Integers only.

Costs are counted in tokens of a prompt that would have to be computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from interlock.engine.sequence import Sequence as EngineSequence
from interlock.runners.base import RunnerInfo

_GAP_COST = 16
"""A runner pays for each gap between slots in use, in every step; for a short answer about this much."""
_SCAN = 64
"""Tokens compared at first: most pairs differ early or not at all."""


@dataclass(slots=True, eq=False)
class Slot:
    """A slot of the runner. holder: the running sequence it belongs to. left: what its cache holds while it
    belongs to none. last_use: the allocation, by number, up to which it was in use."""

    index: int
    holder: EngineSequence | None = None
    left: list[int] = field(default_factory=list)
    last_use: int = 0

    @property
    def num_tokens(self) -> int:
        return len(self.left) if self.holder is None else self.holder.num_computed_tokens

    def common_prefix(self, token_ids: list[int], limit: int) -> int:
        """How many of the first ``limit`` of ``token_ids`` its cache begins with."""
        held = self.left if self.holder is None else self.holder.token_ids
        return common_prefix(held, token_ids, min(limit, self.num_tokens))


@dataclass(frozen=True, slots=True)
class Placement:
    """A free slot for a sequence. num_cached_tokens: how many of its first tokens need not be computed.
    source: where they are copied from; ``None`` when the slot itself holds them."""

    slot: Slot
    num_cached_tokens: int
    source: Slot | None
    cost: float


def common_prefix(left: Sequence[int], right: Sequence[int], limit: int) -> int:
    """Tokens that two lists begin with in common, at most ``limit``, which neither is shorter than."""
    if left[: min(_SCAN, limit)] != right[: min(_SCAN, limit)]:
        limit = min(_SCAN, limit) - 1
    low = 0  # in common, as far as is known
    while low < limit:
        middle = (low + limit + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            limit = middle - 1
    return low


def place(
    slots: Sequence[Slot], token_ids: list[int], limit: int, info: RunnerInfo, now: int
) -> Placement | None:
    """The cheapest free slot for ``token_ids``, of equals the lowest; ``None`` when none is free.

    limit: how many of the tokens may come from a cache. now: the number of this allocation.
    """
    common = {slot.index: slot.common_prefix(token_ids, limit) for slot in slots}
    best = max(slots, key=lambda slot: common[slot.index]) if info.capabilities.prefix_copy else None
    placements = []
    for slot in slots:
        if slot.holder is not None:
            continue
        gap = _GAP_COST * _num_new_runs(slots, slot)
        for source in (None, best):
            if source is slot or (source is not None and common[source.index] == 0):
                continue
            num_cached = _usable(slot, common[slot.index], info) if source is None else common[source.index]
            cost = float(gap + len(token_ids) - num_cached)
            cost += _loss(slot, num_cached if source is None else 0, now, len(slots))
            if source is not None:
                cost += info.copy_cost_tokens
            placements.append(Placement(slot, num_cached, source, cost))
    return min(placements, key=lambda placement: placement.cost, default=None)


def least_valuable(slots: Iterable[Slot], now: int) -> Slot | None:
    """The slot whose left-overs are least likely to be missed, ``None`` when there are none."""
    slots = list(slots)
    left = [slot for slot in slots if slot.holder is None and slot.left]
    return min(left, key=lambda slot: _loss(slot, 0, now, len(slots)), default=None)


def _usable(slot: Slot, num_common: int, info: RunnerInfo) -> int:
    """A cache that cannot be cut serves as a whole or not at all."""
    is_usable = info.capabilities.partial_rollback or num_common == slot.num_tokens
    return num_common if is_usable else 0


def _loss(slot: Slot, num_kept: int, now: int, num_slots: int) -> float:
    """What it costs to lose a cache but for its first tokens: half of it is expected to be wanted again, and
    half as much for each round of allocations that nobody wanted it."""
    age = (now - slot.last_use) / num_slots
    return float((slot.num_tokens - num_kept) * 0.5 ** (1 + age))


def _num_new_runs(slots: Sequence[Slot], slot: Slot) -> int:
    """By how much the number of runs of neighbouring slots in use grows when ``slot`` is used too."""
    around = (slot.index - 1, slot.index + 1)
    neighbours = [slots[i] for i in around if 0 <= i < len(slots) and slots[i].holder is not None]
    return 1 - len(neighbours)
