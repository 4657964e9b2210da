"""Who holds which slot of the runner's cache."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from interlock.engine.sequence import Sequence
from interlock.runners.base import ModelRunner


class KVCacheManager:
    """Gives slots to sequences, the lowest first: a runner may need more passes for slots far apart.

    The only caller of the runner's slot operations, so never to be used while a forward pass is in flight.
    """

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self._free = list(range(runner.info.num_slots))  # a heap
        self._holders: dict[int, Sequence] = {}

    @property
    def num_free_slots(self) -> int:
        return len(self._free)

    def allocate(self, sequence: Sequence) -> bool:
        """Give ``sequence`` an empty slot; False when there is none."""
        if not self._free:
            return False
        slot = heapq.heappop(self._free)
        self._holders[slot] = sequence
        sequence.slot = slot
        self.clear(sequence)
        return True

    def clear(self, sequence: Sequence) -> None:
        """Forget what the slot of ``sequence`` holds; its tokens are computed again."""
        assert sequence.slot is not None
        self._runner.truncate(sequence.slot, 0)
        sequence.num_computed_tokens = 0

    def free(self, sequence: Sequence) -> None:
        """Take the slot of ``sequence`` back; nothing to do without one."""
        if sequence.slot is None:
            return
        del self._holders[sequence.slot]
        heapq.heappush(self._free, sequence.slot)
        sequence.slot = None
        sequence.num_computed_tokens = 0

    def check(self, running: Iterable[Sequence]) -> None:
        """Raise ``AssertionError`` unless every slot is free or held by exactly one of ``running``."""
        held = {sequence.slot: sequence for sequence in running}
        assert held == self._holders, f"slots {sorted(self._holders)} do not match the running sequences"
        slots = sorted([*self._free, *self._holders])
        assert slots == list(range(self._runner.info.num_slots)), f"slots lost or doubled: {slots}"
