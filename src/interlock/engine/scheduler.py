"""Which tokens are computed next: continuous batching with chunked prefill. Integers only."""

from __future__ import annotations

import bisect
from collections.abc import Collection
from dataclasses import dataclass

from interlock.engine.kv_cache_manager import KVCacheManager
from interlock.engine.sequence import Sequence, SequenceStatus
from interlock.errors import InterlockError

_PREFILL_DIVISOR = 4
"""While sequences decode, prompts get at most this fraction of the budget: it bounds the time between two
tokens of a running stream."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next ``num_tokens`` tokens of a sequence that are not in the cache yet."""

    sequence: Sequence
    num_tokens: int

    @property
    def needs_logits(self) -> bool:
        """Whether the chunk reaches the end of what is known, so the next token is chosen after it."""
        return self.num_tokens == self.sequence.num_pending_tokens


class Scheduler:
    """Holds every unfinished sequence, in exactly one of three places: waiting for its grammar, waiting
    for a slot, running.

    Decoding sequences go first, one token each, the one served longest ago first; what is left of the
    budget goes to prompts by priority and arrival. A share of the budget is kept for each kind, so
    neither can starve the other.
    """

    def __init__(self, kv: KVCacheManager, *, max_batch_tokens: int, max_waiting: int) -> None:
        if max_batch_tokens < 2:
            raise ValueError(f"max_batch_tokens is {max_batch_tokens}; a step needs room for 2 tokens")
        self._kv = kv
        self._max_batch_tokens = max_batch_tokens
        self._prefill_share = max(1, max_batch_tokens // _PREFILL_DIVISOR)
        self._max_waiting = max_waiting
        self._without_grammar: set[Sequence] = set()
        self._waiting: list[Sequence] = []  # sorted by Sequence.order
        self._running: list[Sequence] = []  # who waits longest for a turn comes first

    @property
    def num_waiting(self) -> int:
        return len(self._waiting) + len(self._without_grammar)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def has_work(self) -> bool:
        """A step would compute something."""
        return bool(self._running or self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Take a new sequence, ``WAITING`` or ``WAITING_FOR_GRAMMAR``. Raises ``InterlockError`` with
        code ``overloaded`` when too many wait already."""
        if self.num_waiting - self._kv.num_free_slots >= self._max_waiting:
            raise InterlockError("overloaded", f"{self.num_waiting} requests are waiting; try again later")
        if sequence.status is SequenceStatus.WAITING_FOR_GRAMMAR:
            self._without_grammar.add(sequence)
        else:
            bisect.insort(self._waiting, sequence, key=_order)

    def grammar_ready(self, sequence: Sequence) -> None:
        """A sequence that waited for its grammar may run now, at its place by arrival."""
        self._without_grammar.remove(sequence)
        sequence.status = SequenceStatus.WAITING
        bisect.insort(self._waiting, sequence, key=_order)

    def schedule(self, only: Collection[Sequence] | None = None) -> list[Chunk]:
        """The chunks of the next step, at most the budget in tokens, at most one for a sequence.
        ``only`` restricts the step to some of the running sequences."""
        if only is None:
            self._admit()
        candidates = self._running if only is None else [one for one in self._running if one in only]
        decodes = [sequence for sequence in candidates if sequence.num_pending_tokens == 1]
        prefills = [sequence for sequence in candidates if sequence.num_pending_tokens > 1]
        chunks = self._schedule_decodes(decodes, reserve=self._prefill_share if prefills else 0)
        room = self._max_batch_tokens - len(chunks)
        if prefills:
            chunks += self._schedule_prefills(prefills, min(room, self._prefill_share) if chunks else room)
        return chunks

    def restart(self, sequence: Sequence) -> None:
        """Compute all tokens of a running sequence again."""
        self._kv.clear(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Finish a sequence, wherever it is, and free its slot."""
        match sequence.status:
            case SequenceStatus.WAITING_FOR_GRAMMAR:
                self._without_grammar.remove(sequence)
            case SequenceStatus.WAITING:
                self._waiting.remove(sequence)
            case SequenceStatus.RUNNING:
                self._running.remove(sequence)
                self._kv.free(sequence)
        sequence.status = SequenceStatus.FINISHED

    def check(self) -> None:
        """Raise ``AssertionError`` unless every sequence is where its status says, once."""
        self._kv.check(self._running)
        places = (
            (SequenceStatus.WAITING_FOR_GRAMMAR, self._without_grammar),
            (SequenceStatus.WAITING, self._waiting),
            (SequenceStatus.RUNNING, self._running),
        )
        for status, sequences in places:
            assert len(set(sequences)) == len(sequences), f"a sequence is {status.value} twice"
            for sequence in sequences:
                assert sequence.status is status, f"{sequence.request_id} is not {status.value}"
                assert (sequence.slot is not None) == (status is SequenceStatus.RUNNING)
                assert 0 <= sequence.num_computed_tokens < len(sequence.token_ids)
        assert self._waiting == sorted(self._waiting, key=_order), "the queue is out of order"

    def _admit(self) -> None:
        while self._waiting and self._kv.allocate(self._waiting[0]):
            sequence = self._waiting.pop(0)
            sequence.status = SequenceStatus.RUNNING
            self._running.append(sequence)

    def _schedule_decodes(self, decodes: list[Sequence], *, reserve: int) -> list[Chunk]:
        room = self._max_batch_tokens - reserve
        if len(decodes) > room:
            decodes = decodes[:room]
            served = set(decodes)
            self._running = [one for one in self._running if one not in served] + decodes
        return [Chunk(sequence, 1) for sequence in decodes]

    def _schedule_prefills(self, prefills: list[Sequence], room: int) -> list[Chunk]:
        chunks = []
        for sequence in sorted(prefills, key=_order):
            if room == 0:
                break
            num_tokens = min(room, sequence.num_pending_tokens)
            chunks.append(Chunk(sequence, num_tokens))
            room -= num_tokens
        return chunks


def _order(sequence: Sequence) -> tuple[int, int]:
    return sequence.order
