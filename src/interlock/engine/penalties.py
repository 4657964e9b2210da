"""What the penalties of one sequence count, kept only for sequences that have penalties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from interlock.core.sampling import SamplingParams


class PenaltyState:
    """Counts of generated ids, and the set of ids seen in prompt or output."""

    __slots__ = ("_buffer", "_known", "output_counts")

    def __init__(self, prompt_ids: Iterable[int]) -> None:
        self.output_counts: Counter[int] = Counter()
        self._known = dict.fromkeys(prompt_ids)
        self._buffer = np.fromiter(self._known, dtype=np.int32, count=len(self._known))

    @classmethod
    def of(cls, params: SamplingParams, prompt_ids: Iterable[int]) -> PenaltyState | None:
        """The state that ``params`` need, ``None`` where they need none."""
        counted = params.frequency_penalty != 0.0 or params.presence_penalty != 0.0
        return cls(prompt_ids) if counted or params.repetition_penalty != 1.0 else None

    @property
    def seen(self) -> NDArray[np.int32]:
        """Ids in prompt or output, int32 [n], no duplicates. Valid until the next ``add``."""
        return self._buffer[: len(self._known)]

    def after(self, token_ids: Iterable[int]) -> PenaltyState:
        """An independent state after ``token_ids`` too."""
        state = PenaltyState(())
        state.output_counts = self.output_counts.copy()
        state._known = self._known.copy()
        state._buffer = self._buffer.copy()
        for token_id in token_ids:
            state.add(token_id)
        return state

    def add(self, token_id: int) -> None:
        """Count one generated token."""
        self.output_counts[token_id] += 1
        if token_id in self._known:
            return
        num_known = len(self._known)
        if num_known == self._buffer.size:
            self._buffer = np.resize(self._buffer, max(64, 2 * num_known))
        self._buffer[num_known] = token_id
        self._known[token_id] = None
