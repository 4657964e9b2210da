"""Counters and timings of the engine step, since the worker started."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence


@dataclass(slots=True)
class StepStats:
    """Times in seconds. ``forward_s`` runs from launch to selection, and holds ``mask_s``. What requests count
    themselves is added when they end."""

    num_steps: int = 0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_generated_tokens: int = 0
    num_forced_tokens: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_preempted: int = 0
    num_resumed: int = 0
    step_s: float = 0.0
    forward_s: float = 0.0
    mask_s: float = 0.0

    @contextmanager
    def timed(self, name: Literal["step_s", "forward_s", "mask_s"]) -> Iterator[None]:
        """Add the time spent inside to one of the times, also when it raises."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - started)

    def count(self, chunks: Iterable[Chunk]) -> None:
        """One step is about to compute ``chunks``."""
        self.num_steps += 1
        for chunk in chunks:
            missing = chunk.sequence.num_prompt_tokens - chunk.sequence.num_computed_tokens
            self.num_prompt_tokens += max(0, min(missing, chunk.num_tokens))

    def count_end(self, sequence: Sequence) -> None:
        """A request has ended."""
        self.num_cached_tokens += sequence.num_cached_tokens or 0
        self.num_preempted += sequence.num_preemptions
