"""What one sequence must not choose beside its constraint, kept only for sequences that have such."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.core.engine import EngineRequest
from interlock.core.sampling import TokenLimits


class TokenLimiter:
    """A request's ``TokenLimits``, as masks.

    A pure function of the output so far, so drafts, preemption and resumption change nothing. tail_length: how many
    of the last output tokens the methods need to see in ``tail``.
    """

    __slots__ = ("_allowed", "_banned", "_base", "_min_tokens", "_stop_ids", "_suppressed", "tail_length")

    def __init__(self, request: EngineRequest) -> None:
        limits = request.limits
        self._banned = tuple((ids[:-1], ids[-1]) for ids in limits.banned)
        self._allowed = _allowed(request)
        self._base: Mask | None = None
        self._min_tokens = limits.min_tokens
        self._stop_ids = tuple({*request.stop_ids, *limits.suppressed})
        self._suppressed = limits.suppressed
        self.tail_length = max((len(before) for before, _ in self._banned), default=0)

    @classmethod
    def of(cls, request: EngineRequest) -> TokenLimiter | None:
        """``None`` where the request has no limits."""
        return None if request.limits == TokenLimits() else cls(request)

    def allows(self, token_id: int, tail: Seq[int]) -> bool:
        """Whether ``token_id`` may be chosen behind ``tail`` if nothing else is left."""
        return (not self._allowed or token_id in self._allowed) and token_id not in self._banned_behind(tail)

    def applied(self, mask: Mask | None, tail: Seq[int], position: int, vocab_size: int) -> Mask | None:
        """``mask`` (``None``: every id) of output token ``position`` without what must not be chosen behind ``tail``:
        itself, or a copy. Nothing is left in it where the limits leave nothing."""
        banned = self._banned_behind(tail)
        suppressed = self._stop_ids if position < self._min_tokens else self._suppressed
        if not (banned or suppressed or self._allowed):
            return mask
        left = self._permitted(mask, vocab_size)
        if banned:
            left = bitmask.without(left, banned)
        preferred = bitmask.without(left, suppressed)
        return preferred if bitmask.any_allowed(preferred) else left

    def _banned_behind(self, tail: Seq[int]) -> set[int]:
        tail = tuple(tail)
        return {last for before, last in self._banned if tail[max(0, len(tail) - len(before)) :] == before}

    def _permitted(self, mask: Mask | None, vocab_size: int) -> Mask:
        if self._base is None:
            every = bitmask.all_allowed(vocab_size)
            self._base = bitmask.of_ids(vocab_size, self._allowed) if self._allowed else every
        if mask is None:
            return self._base
        return mask & self._base if self._allowed else mask


def _allowed(request: EngineRequest) -> frozenset[int]:
    """With what is not the request's to choose: where a grammar ends, and how thinking is closed."""
    ids = request.limits.allowed
    if not ids:
        return frozenset()
    ends = () if request.constraint is None else request.stop_ids
    closing = () if request.thinking is None else request.thinking.close_ids
    return frozenset((*ids, *ends, *closing))
