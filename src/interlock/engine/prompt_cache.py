"""What slots held, in memory of the host: saved before a slot is used for something else, found by its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from interlock.engine.common_prefix import common_prefix
from interlock.runners.base import SavedState

BLOCK_TOKENS = 32
"""Prefixes are found by whole blocks; a shorter one is not worth a copy."""
MOVED_PER_COMPUTED = 32
"""Tokens that are saved or restored in the time that computes one; measured on CPUs it is more, see docs/log.md."""
_MOST_COMPARED = 16
"""States that share a last block are compared token by token, the latest ones only."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedPrompt:
    """A saved state and the tokens that it is of. blocks: a key for each whole block and all before it."""

    token_ids: list[int]
    state: SavedState
    blocks: tuple[int, ...]


@dataclass(slots=True)
class PromptCacheStats:
    """Counters since the worker started. num_restored_tokens: tokens that were not computed again for it."""

    num_saved: int = 0
    num_restored: int = 0
    num_restored_tokens: int = 0
    num_evicted: int = 0


class PromptCache:
    """Saved states of at most ``max_bytes`` together; the least recently used ones go first. 0 bytes: none are kept."""

    def __init__(self, max_bytes: int = 0) -> None:
        self._max_bytes = max_bytes
        self._prompts: dict[SavedPrompt, None] = {}  # the least recently used one first
        self._by_block: dict[int, dict[SavedPrompt, None]] = {}
        self.num_bytes = 0
        self.stats = PromptCacheStats()

    @property
    def is_on(self) -> bool:
        return self._max_bytes > 0

    def find(self, token_ids: list[int], limit: int) -> tuple[SavedPrompt | None, int]:
        """The state that most of the first ``limit`` of ``token_ids`` begin with, and how many; ``None`` and 0 where
        that is less than a block."""
        deepest: dict[SavedPrompt, None] = {}
        if self._prompts:
            for key in _block_keys(token_ids, limit):
                sharing = self._by_block.get(key)
                if sharing is None:
                    break
                deepest = sharing
        best, num_common = None, 0
        for prompt in islice(reversed(deepest), _MOST_COMPARED):
            common = common_prefix(prompt.token_ids, token_ids, min(limit, len(prompt.token_ids)))
            if common > num_common:
                best, num_common = prompt, common
        return (best, num_common) if num_common >= BLOCK_TOKENS else (None, 0)

    def wants(self, token_ids: list[int], num_kept: int, num_bytes: int) -> bool:
        """Whether a state of these tokens, the first ``num_kept`` of which are kept elsewhere, says enough that is not
        saved yet. One that is, counts as used now."""
        if not 0 < num_bytes <= self._max_bytes:
            return False
        known, num_common = self.find(token_ids, len(token_ids))
        num_lost = len(token_ids) - max(num_kept, num_common)
        if num_lost >= BLOCK_TOKENS + len(token_ids) / MOVED_PER_COMPUTED:
            return True
        if known is not None:
            self._touch(known)
        return False

    def make_room(self, num_bytes: int) -> None:
        """Drop states until one of ``num_bytes`` fits."""
        while self._prompts and self.num_bytes + num_bytes > self._max_bytes:
            self.discard(next(iter(self._prompts)))
            self.stats.num_evicted += 1

    def add(self, token_ids: list[int], state: SavedState) -> None:
        """Keep ``state``, whose first tokens are ``token_ids``; what is saved of its beginning alone goes."""
        known, num_common = self.find(token_ids, len(token_ids))
        if known is not None and num_common == len(known.token_ids):
            self.discard(known)
        self.make_room(state.num_bytes)
        prompt = SavedPrompt(token_ids, state, tuple(_block_keys(token_ids, len(token_ids))))
        self._prompts[prompt] = None
        for key in prompt.blocks:
            self._by_block.setdefault(key, {})[prompt] = None
        self.num_bytes += state.num_bytes
        self.stats.num_saved += 1

    def restored(self, prompt: SavedPrompt, num_tokens: int) -> None:
        """The first ``num_tokens`` of ``prompt`` are in a slot again."""
        self._touch(prompt)
        self.stats.num_restored += 1
        self.stats.num_restored_tokens += num_tokens

    def discard(self, prompt: SavedPrompt) -> None:
        """Let go of a state; nothing to do where that has happened."""
        if prompt not in self._prompts:
            return
        del self._prompts[prompt]
        self.num_bytes -= prompt.state.num_bytes
        for key in prompt.blocks:
            sharing = self._by_block[key]
            del sharing[prompt]
            if not sharing:
                del self._by_block[key]

    def clear(self) -> None:
        """Let go of all of them."""
        self._prompts.clear()
        self._by_block.clear()
        self.num_bytes = 0

    def check(self) -> None:
        """Raise ``AssertionError`` if what is counted and what is there do not agree."""
        assert self.num_bytes == sum(prompt.state.num_bytes for prompt in self._prompts) <= self._max_bytes
        assert all(len(prompt.token_ids) <= prompt.state.num_tokens for prompt in self._prompts)
        indexed = {prompt for sharing in self._by_block.values() for prompt in sharing}
        assert indexed == {prompt for prompt in self._prompts if prompt.blocks}, "the index is out of date"

    def _touch(self, prompt: SavedPrompt) -> None:
        if prompt in self._prompts:
            self._prompts[prompt] = self._prompts.pop(prompt)


def _block_keys(token_ids: list[int], limit: int) -> Iterator[int]:
    """For each whole block of the first ``limit`` tokens a hash of all up to its end. Tokens are compared afterwards."""
    key = 0
    for start in range(0, min(limit, len(token_ids)) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        key = hash((key, *token_ids[start : start + BLOCK_TOKENS]))
        yield key
