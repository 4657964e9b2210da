"""Counters and timings of the engine step, since the worker started."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from interlock.constraints.compiler import CompilerStats
from interlock.core.engine import EngineStats
from interlock.engine.prompt_cache import PromptCache
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
    num_vetoed: int = 0
    num_backtracked: int = 0
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
        self.num_vetoed += sequence.num_vetoed
        self.num_backtracked += sequence.num_backtracks

    def snapshot(
        self,
        unfinished: Collection[Sequence],
        grammars: CompilerStats,
        saved: PromptCache,
        *,
        num_waiting: int,
        num_running: int,
        num_slots: int,
    ) -> EngineStats:
        """With what the ``unfinished`` have counted so far."""
        return EngineStats(
            num_waiting=num_waiting,
            num_running=num_running,
            num_slots=num_slots,
            num_steps=self.num_steps,
            num_prompt_tokens=self.num_prompt_tokens,
            num_cached_tokens=self.num_cached_tokens + sum(one.num_cached_tokens or 0 for one in unfinished),
            num_restored_tokens=saved.stats.num_restored_tokens,
            num_states_saved=saved.stats.num_saved,
            num_states_restored=saved.stats.num_restored,
            num_states_evicted=saved.stats.num_evicted,
            prompt_cache_bytes=saved.num_bytes,
            num_generated_tokens=self.num_generated_tokens,
            num_forced_tokens=self.num_forced_tokens,
            num_draft_tokens=self.num_draft_tokens,
            num_accepted_tokens=self.num_accepted_tokens,
            num_vetoed_tokens=self.num_vetoed + sum(one.num_vetoed for one in unfinished),
            num_backtracked=self.num_backtracked + sum(one.num_backtracks for one in unfinished),
            num_preempted=self.num_preempted + sum(one.num_preemptions for one in unfinished),
            num_resumed=self.num_resumed,
            num_grammar_compiles=grammars.num_compiles,
            num_grammar_cache_hits=grammars.num_hits,
            grammar_cache_bytes=grammars.cache_bytes,
            step_s=self.step_s,
            forward_s=self.forward_s,
            mask_s=self.mask_s,
        )
