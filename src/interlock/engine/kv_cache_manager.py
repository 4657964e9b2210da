"""Who holds which slot of the runner's cache, and what is left in the free ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from interlock.engine.common_prefix import common_prefix
from interlock.engine.placement import Placement, Slot, least_valuable, place
from interlock.engine.prompt_cache import PromptCache
from interlock.engine.sequence import Sequence
from interlock.runners.base import ModelRunner

_WORTH_WAITING = 32
"""Tokens by which a prefix must grow for a sequence to wait for it."""
MOST_MOVED = 2_048
"""With so many tokens saved and restored in a step nothing more is: it takes as long as computing some 64, see
``MOVED_PER_COMPUTED``."""


class KVCacheManager:
    """Gives slots to sequences. What a sequence leaves in its slot stays there until the room is needed, for
    sequences that begin alike: they get the slot itself, or a copy where that is cheaper and the runner can. What
    is dropped from a slot is saved first, where the runner can.

    max_tokens: most tokens in all slots together, 0 for no limit but theirs; drafts come on top of it.
    saved: keeps what is saved; ``None`` for nothing.
    The only caller of the runner's slot operations, so never to be used while a forward pass is in flight.
    """

    def __init__(
        self,
        runner: ModelRunner,
        *,
        max_tokens: int = 0,
        prefix_cache: bool = True,
        saved: PromptCache | None = None,
    ) -> None:
        self._runner = runner
        self._info = runner.info
        self._max_tokens = max_tokens or self._info.num_slots * self._info.context_tokens
        self._prefix_cache = prefix_cache
        can_save = prefix_cache and self._info.capabilities.saved_states
        self._saved = saved if saved is not None and can_save else PromptCache()
        self._slots = [Slot(index) for index in range(self._info.num_slots)]
        self._num_allocations = 0
        self._num_moved = 0  # tokens, in this step

    def begin_step(self) -> None:
        """What is saved and restored counts for a new step."""
        self._num_moved = 0

    @property
    def has_moved_enough(self) -> bool:
        """So much has been saved and restored in this step that a sequence without a slot had better wait for the next."""
        return self._num_moved >= MOST_MOVED

    @property
    def num_slots(self) -> int:
        return len(self._slots)

    @property
    def num_free_slots(self) -> int:
        return sum(slot.holder is None for slot in self._slots)

    @property
    def is_over_limit(self) -> bool:
        """The running sequences need more tokens than there may be."""
        return self._num_held_tokens() > self._max_tokens

    def has_room_for(self, sequence: Sequence, without: Collection[Sequence] = ()) -> bool:
        """Whether ``sequence`` could run now, or if those of ``without`` did not."""
        is_slot_free = bool(without) or self.num_free_slots > 0
        return is_slot_free and self._num_held_tokens(without) + len(sequence.token_ids) <= self._max_tokens

    def is_prefix_coming(self, sequence: Sequence) -> bool:
        """Whether a running sequence is about to compute tokens that ``sequence`` begins with, so that it
        would do better to wait and copy them."""
        if not (self._prefix_cache and self._info.capabilities.prefix_copy):
            return False
        limit = sequence.num_reusable_tokens
        worth_it = self._info.copy_cost_tokens + _WORTH_WAITING
        coming = worth_it - 1
        for slot in self._slots:
            holder = slot.holder
            if holder is not None and not holder.is_decoding and holder.order < sequence.order:
                known = holder.token_ids
                coming = max(coming, common_prefix(known, sequence.token_ids, min(limit, len(known))))
        if coming < worth_it:
            return False
        _, at_hand = self._saved.find(sequence.token_ids, limit)
        at_hand = max(at_hand, *(slot.common_prefix(sequence.token_ids, limit) for slot in self._slots))
        return coming >= worth_it + at_hand

    def allocate(self, sequence: Sequence) -> bool:
        """Give ``sequence`` a slot, with as many of its tokens computed as can be had; False when there is none."""
        self._num_allocations += 1
        limit = sequence.num_reusable_tokens if self._prefix_cache else 0
        placement = place(
            self._slots, sequence.token_ids, limit, self._info, self._num_allocations, self._saved
        )
        if placement is None:
            return False
        slot = placement.slot
        self._save(slot, placement.num_kept_tokens)
        num_cached = self._fill(placement)
        slot.holder = sequence
        slot.left = []
        sequence.slot = slot.index
        sequence.num_computed_tokens = num_cached
        self.trim()
        return True

    def _fill(self, placement: Placement) -> int:
        """Let the slot hold what it is to begin with: how many tokens."""
        slot, source, num_cached = placement.slot, placement.source, placement.num_cached_tokens
        if source is None:
            self._runner.truncate(slot.index, num_cached)
        elif isinstance(source, Slot):
            self._runner.copy_prefix(source.index, slot.index, num_cached)
            source.last_use = self._num_allocations
        elif self._runner.restore_state(slot.index, source.state, num_cached):
            self._saved.restored(source, num_cached)
            self._num_moved += source.state.num_tokens
        else:
            self._saved.discard(source)
            return 0
        return num_cached

    def _save(self, slot: Slot, num_kept: int) -> None:
        """Keep a copy of what a slot was left with, where it is worth that and more than ``num_kept`` tokens would go."""
        if not self._saved.is_on or num_kept == len(slot.left):
            return
        num_bytes = self._runner.state_bytes(slot.index)
        if self._saved.wants(slot.left, num_kept, num_bytes):
            self._saved.make_room(num_bytes)
            state = self._runner.save_state(slot.index)
            if state is not None:
                self._saved.add(slot.left, state)
                self._num_moved += state.num_tokens

    def clear(self, sequence: Sequence) -> None:
        """Forget what the slot of ``sequence`` holds; its tokens are computed again."""
        assert sequence.slot is not None
        self._runner.truncate(sequence.slot, 0)
        sequence.num_computed_tokens = 0

    @property
    def cuts_anywhere(self) -> bool:
        """``cut`` works for any number of tokens."""
        return self._runner.info.capabilities.partial_rollback

    def cut(self, sequence: Sequence, num_tokens: int) -> None:
        """Drop what the slot of ``sequence`` holds behind its first ``num_tokens`` tokens."""
        assert sequence.slot is not None
        self._runner.truncate(sequence.slot, num_tokens)
        sequence.num_computed_tokens = num_tokens

    def free(self, sequence: Sequence) -> None:
        """Take the slot of ``sequence`` back; nothing to do without one."""
        if sequence.slot is None:
            return
        slot = self._slots[sequence.slot]
        slot.holder = None
        slot.left = sequence.token_ids[: sequence.num_computed_tokens] if self._prefix_cache else []
        slot.last_use = self._num_allocations
        sequence.slot = None
        sequence.num_computed_tokens = 0

    def trim(self) -> None:
        """Drop left-overs that are over the limit together with what the running sequences need. They are not saved where
        enough has been moved in this step."""
        excess = self._num_held_tokens() + sum(len(slot.left) for slot in self._slots) - self._max_tokens
        while excess > 0 and (slot := least_valuable(self._slots, self._num_allocations)) is not None:
            if not self.has_moved_enough:
                self._save(slot, 0)
            self._runner.truncate(slot.index, 0)
            excess -= len(slot.left)
            slot.left = []

    def check(self, running: Iterable[Sequence]) -> None:
        """Raise ``AssertionError`` unless every slot is free or held by exactly one of ``running``."""
        held = {sequence.slot: sequence for sequence in running}
        holders = {slot.index: slot.holder for slot in self._slots if slot.holder is not None}
        assert held == holders, f"slots {sorted(holders)} do not match the running sequences"
        for slot in self._slots:
            assert slot.holder is None or not slot.left, f"slot {slot.index} is held and has left-overs"
        self._saved.check()

    def _num_held_tokens(self, without: Collection[Sequence] = ()) -> int:
        """Tokens that the running sequences need, computed or not."""
        holders = (slot.holder for slot in self._slots)
        return sum(len(holder.token_ids) for holder in holders if holder is not None and holder not in without)
