"""Where a sequence finds most of its tokens computed already. Integers only.

Costs are counted in tokens of a prompt that would have to be computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from interlock.engine.common_prefix import common_prefix
from interlock.engine.prompt_cache import MOVED_PER_COMPUTED, PromptCache, SavedPrompt
from interlock.engine.sequence import Sequence as EngineSequence
from interlock.runners.base import RunnerInfo

_GAP_COST = 16
"""A runner pays for each gap between slots in use, in every step; for a short answer about this much."""


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
    source: Slot | SavedPrompt | None
    cost: float

    @property
    def num_kept_tokens(self) -> int:
        """How much of what the slot holds stays."""
        return self.num_cached_tokens if self.source is None else 0


def place(
    slots: Sequence[Slot], token_ids: list[int], limit: int, info: RunnerInfo, now: int, saved: PromptCache
) -> Placement | None:
    """The cheapest free slot for ``token_ids``, of equals the lowest; ``None`` when none is free.

    limit: how many of the tokens may come from a cache. now: the number of this allocation. saved: what was saved of
    slots, and will be of this one.
    """
    common = {slot.index: slot.common_prefix(token_ids, limit) for slot in slots}
    sources = _sources(slots, common, info, saved.find(token_ids, limit))
    placements = []
    for slot in slots:
        if slot.holder is not None:
            continue
        gap = _GAP_COST * _num_new_runs(slots, slot)
        own = (None, _usable(slot, common[slot.index], info), 0.0)
        for source, num_cached, cost in (own, *sources):
            if source is slot:
                continue
            num_lost = slot.num_tokens - (num_cached if source is None else 0)
            loss = _loss(slot, num_lost, now, len(slots), saved.is_on)
            total = gap + len(token_ids) - num_cached + cost + loss
            placements.append(Placement(slot, num_cached, source, total))
    return min(placements, key=lambda placement: placement.cost, default=None)


def _sources(
    slots: Sequence[Slot],
    common: Mapping[int, int],
    info: RunnerInfo,
    found: tuple[SavedPrompt | None, int],
) -> list[tuple[Slot | SavedPrompt, int, float]]:
    """Where a prefix can be copied from: how many tokens of it, and what that costs."""
    sources: list[tuple[Slot | SavedPrompt, int, float]] = []
    if info.capabilities.prefix_copy:
        best = max(slots, key=lambda slot: common[slot.index])
        if common[best.index]:
            sources.append((best, common[best.index], info.copy_cost_tokens))
    prompt, num_common = found
    if prompt is not None:
        sources.append((prompt, num_common, prompt.state.num_tokens / MOVED_PER_COMPUTED))
    return sources


def least_valuable(slots: Iterable[Slot], now: int) -> Slot | None:
    """The slot whose left-overs are least likely to be missed, ``None`` when there are none."""
    slots = list(slots)
    left = [slot for slot in slots if slot.holder is None and slot.left]
    return min(left, key=lambda slot: _loss(slot, slot.num_tokens, now, len(slots), False), default=None)


def _usable(slot: Slot, num_common: int, info: RunnerInfo) -> int:
    """A cache that cannot be cut serves as a whole or not at all."""
    is_usable = info.capabilities.partial_rollback or num_common == slot.num_tokens
    return num_common if is_usable else 0


def _loss(slot: Slot, num_lost: int, now: int, num_slots: int, is_saved: bool) -> float:
    """What it costs to lose so many tokens of a cache: half of it is expected to be wanted again, and
    half as much for each round of allocations that nobody wanted it. What is saved is moved instead of computed."""
    age = (now - slot.last_use) / num_slots
    share = 1 / MOVED_PER_COMPUTED if is_saved else 1.0
    return float(num_lost * 0.5 ** (1 + age) * share)


def _num_new_runs(slots: Sequence[Slot], slot: Slot) -> int:
    """By how much the number of runs of neighbouring slots in use grows when ``slot`` is used too."""
    around = (slot.index - 1, slot.index + 1)
    neighbours = [slots[i] for i in around if 0 <= i < len(slots) and slots[i].holder is not None]
    return 1 - len(neighbours)
