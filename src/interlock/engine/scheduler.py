"""Which tokens are computed next: continuous batching with chunked prefill. Integers only."""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection
from dataclasses import dataclass

from interlock.engine.kv_cache_manager import KVCacheManager
from interlock.engine.sequence import Sequence, SequenceStatus
from interlock.errors import InterlockError

_PREFILL_DIVISOR = 4
"""While sequences decode, prompts get at most this fraction of the budget: it bounds the time between two
tokens of a running stream."""

_MOST_SCORED = 64
"""Tokens of a prompt that are scored in one step: each needs a row of logits."""
NOTHING = range(0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next ``num_tokens`` tokens of a sequence that are not in the cache yet."""

    sequence: Sequence
    num_tokens: int

    @property
    def slot(self) -> int:
        """Where the runner keeps the sequence's cache."""
        slot = self.sequence.slot
        assert slot is not None, "only running sequences are scheduled"
        return slot

    @property
    def needs_logits(self) -> bool:
        """Whether the chunk reaches the end of what is known, so the next token is chosen after it."""
        return self.num_tokens == self.sequence.num_pending_tokens

    @property
    def scored(self) -> range:
        """Positions behind which the logits say how likely the next token of the prompt was."""
        scores = self.sequence.prompt_scores
        if scores is None:
            return NOTHING
        start = self.sequence.num_computed_tokens
        end = min(start + self.num_tokens, self.sequence.num_prompt_tokens - 1)
        return range(max(start, len(scores) - 1), end)


class Scheduler:
    """Holds every unfinished sequence, in exactly one of four places: waiting for its grammar, waiting
    for a slot, running, paused.

    Decoding sequences go first, each with what its last step added, the one served longest ago first; what is left of the
    budget goes to prompts by priority and arrival. A share of the budget is kept for each kind, so
    neither can starve the other.

    A running sequence is preempted for one of higher priority, for one of its own after ``fairness_tokens``
    (0: never), and when the cache is full. It replays prompt and output when its turn comes again. A turn is at
    least as long as what had to be replayed for it, so replays cost no more than generating did.
    """

    def __init__(
        self, kv: KVCacheManager, *, max_batch_tokens: int, max_waiting: int, fairness_tokens: int = 0
    ) -> None:
        if max_batch_tokens < 2:
            raise ValueError(f"max_batch_tokens is {max_batch_tokens}; a step needs room for 2 tokens")
        self._kv = kv
        self._max_batch_tokens = max_batch_tokens
        self._prefill_share = max(1, max_batch_tokens // _PREFILL_DIVISOR)
        self._max_waiting = max_waiting
        self._turn_tokens = fairness_tokens or math.inf
        self._last_arrival = 0
        self._without_grammar: set[Sequence] = set()
        self._waiting: list[Sequence] = []  # sorted by Sequence.order
        self._running: list[Sequence] = []  # who waits longest for a turn comes first
        self._paused: set[Sequence] = set()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting) + len(self._without_grammar)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_paused(self) -> int:
        return len(self._paused)

    @property
    def has_work(self) -> bool:
        """A step would compute something."""
        return bool(self._running or self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Take a new sequence, ``WAITING`` or ``WAITING_FOR_GRAMMAR``. Raises ``InterlockError`` with
        code ``overloaded`` when too many wait already."""
        if self.num_waiting - self._kv.num_free_slots >= self._max_waiting:
            raise InterlockError("overloaded", f"{self.num_waiting} requests are waiting; try again later")
        self._last_arrival = max(self._last_arrival, sequence.arrival)
        if sequence.status is SequenceStatus.WAITING_FOR_GRAMMAR:
            self._without_grammar.add(sequence)
        else:
            bisect.insort(self._waiting, sequence, key=_order)

    def grammar_ready(self, sequence: Sequence) -> None:
        """A sequence that waited for its grammar may run now, at its place by arrival."""
        self._without_grammar.remove(sequence)
        self._enqueue(sequence)

    def await_grammar(self, sequence: Sequence) -> None:
        """Let a running sequence wait for a grammar again, without its slot."""
        self.preempt(sequence)
        self._waiting.remove(sequence)
        sequence.status = SequenceStatus.WAITING_FOR_GRAMMAR
        self._without_grammar.add(sequence)

    def schedule(
        self, only: Collection[Sequence] | None = None, *, prefill_tokens: int | None = None
    ) -> list[Chunk]:
        """The chunks of the next step, at most the budget in tokens, at most one for a sequence.
        ``only`` restricts the step to some of the running sequences; ``prefill_tokens`` lowers the share of
        prompts beside decoding sequences."""
        share = min(self._prefill_share, prefill_tokens or self._prefill_share)
        if only is None:
            self._kv.begin_step()
            self._keep_to_limit()
            self._admit()
        candidates = [one for one in self._running if only is None or one in only]
        candidates = [one for one in candidates if one.num_pending_tokens and not one.is_searching]
        decodes = [sequence for sequence in candidates if sequence.is_decoding]
        prefills = [sequence for sequence in candidates if not sequence.is_decoding]
        chunks = self._schedule_decodes(decodes, reserve=share if prefills else 0)
        room = self._max_batch_tokens - sum(chunk.num_tokens for chunk in chunks)
        if prefills:
            chunks += self._schedule_prefills(prefills, min(room, share) if chunks else room)
        return chunks

    def preempt(self, sequence: Sequence) -> None:
        """Take the slot of a running sequence; it goes on when there is room again."""
        self._running.remove(sequence)
        self._kv.free(sequence)
        sequence.num_preemptions += 1
        self._enqueue(sequence)

    def pause(self, sequence: Sequence) -> None:
        """Let a sequence neither run nor wait for a slot until ``unpause``. Nothing to do for one that waits
        for its grammar."""
        if sequence.status is SequenceStatus.RUNNING:
            self.preempt(sequence)
        if sequence.status is SequenceStatus.WAITING:
            self._waiting.remove(sequence)
            self._paused.add(sequence)
            sequence.status = SequenceStatus.PAUSED

    def unpause(self, sequence: Sequence) -> None:
        """Let a paused sequence go on; nothing to do for others."""
        if sequence.status is SequenceStatus.PAUSED:
            self._paused.remove(sequence)
            self._enqueue(sequence)

    def keep_draft(self, sequence: Sequence, num_right: int, num_guessed: int) -> None:
        """Behind the computed tokens of a running sequence the cache holds its whole draft: right tokens stay."""
        num_tokens = sequence.num_computed_tokens + num_right
        if num_right < num_guessed:
            self._kv.cut(sequence, num_tokens)
        sequence.num_computed_tokens = num_tokens

    def step_back(self, sequence: Sequence) -> None:
        """Compute the last token of a running sequence again, and forget what the cache holds behind it."""
        if self._kv.cuts_anywhere:
            self._kv.cut(sequence, min(len(sequence.token_ids) - 1, sequence.num_computed_tokens))
        else:
            self._kv.clear(sequence)

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
            case SequenceStatus.PAUSED:
                self._paused.remove(sequence)
        sequence.status = SequenceStatus.FINISHED

    def check(self) -> None:
        """Raise ``AssertionError`` unless every sequence is where its status says, once."""
        self._kv.check(self._running)
        places = (
            (SequenceStatus.WAITING_FOR_GRAMMAR, self._without_grammar),
            (SequenceStatus.WAITING, self._waiting),
            (SequenceStatus.RUNNING, self._running),
            (SequenceStatus.PAUSED, self._paused),
        )
        for status, sequences in places:
            assert len(set(sequences)) == len(sequences), f"a sequence is {status.value} twice"
            for sequence in sequences:
                assert sequence.status is status, f"{sequence.request_id} is not {status.value}"
                assert (sequence.slot is not None) == (status is SequenceStatus.RUNNING)
                assert sequence.num_pending_tokens > 0 or sequence.undecided is not None
                assert sequence.num_computed_tokens >= 0
        assert self._waiting == sorted(self._waiting, key=_order), "the queue is out of order"

    def _enqueue(self, sequence: Sequence) -> None:
        sequence.status = SequenceStatus.WAITING
        bisect.insort(self._waiting, sequence, key=_order)

    def _keep_to_limit(self) -> None:
        """Preempt the last ones until what the others need fits the cache."""
        while self._kv.is_over_limit and len(self._running) > 1:
            self.preempt(max(self._running, key=_order))
        self._kv.trim()

    def _admit(self) -> None:
        """Give slots to the first ones in the queue, but not to who had better wait for a prefix."""
        for sequence in self._waiting[: self._kv.num_slots]:
            if self._kv.is_prefix_coming(sequence):
                continue
            if self._kv.has_moved_enough or not self._make_room_for(sequence):
                return
            self._kv.allocate(sequence)
            self._waiting.remove(sequence)
            self._running.append(sequence)
            sequence.status = SequenceStatus.RUNNING
            turn = max(self._turn_tokens, len(sequence.token_ids))
            sequence.turn_ends_at = sequence.num_output_tokens + turn
            if sequence.num_cached_tokens is None:
                sequence.num_cached_tokens = min(sequence.num_computed_tokens, sequence.num_prompt_tokens)

    def _make_room_for(self, sequence: Sequence) -> bool:
        """Preempt who has to give way to ``sequence``, where that makes room for it."""
        if self._kv.has_room_for(sequence):
            return True
        victims = self._victims(sequence)
        if not self._kv.has_room_for(sequence, without=victims):
            return False
        for victim in victims:
            if victim.request.priority == sequence.request.priority:
                victim.arrival = self._last_arrival
            self.preempt(victim)
            if self._kv.has_room_for(sequence):
                break
        return True

    def _victims(self, sequence: Sequence) -> list[Sequence]:
        """Who gives way to ``sequence``, the first to do so first."""
        priority = sequence.request.priority
        lower = [one for one in self._running if one.request.priority < priority]
        equal = [one for one in self._running if one.request.priority == priority]
        equal = [one for one in equal if one.num_output_tokens >= one.turn_ends_at]
        return sorted(lower, key=_order, reverse=True) + sorted(equal, key=_order)

    def _schedule_decodes(self, decodes: list[Sequence], *, reserve: int) -> list[Chunk]:
        room = self._max_batch_tokens - reserve
        chunks = []
        for sequence in decodes:
            if room == 0:
                break
            num_tokens = min(room, sequence.num_pending_tokens)
            chunks.append(Chunk(sequence, num_tokens))
            room -= num_tokens
        if len(chunks) < len(decodes):
            served = [chunk.sequence for chunk in chunks]
            self._running = [one for one in self._running if one not in set(served)] + served
        return chunks

    def _schedule_prefills(self, prefills: list[Sequence], room: int) -> list[Chunk]:
        chunks = []
        for sequence in sorted(prefills, key=_order):
            if room == 0:
                break
            num_tokens = min(room, sequence.num_pending_tokens)
            if sequence.num_unscored_tokens:
                num_tokens = min(num_tokens, _MOST_SCORED)
            chunks.append(Chunk(sequence, num_tokens))
            room -= num_tokens
        return chunks


def _order(sequence: Sequence) -> tuple[int, int]:
    return sequence.order
