"""How much prompt a step may hold while other sequences decode."""

from __future__ import annotations

_TARGET_S = 0.2
"""A prompt may hold up the streams beside it for about this long at a time. Each step that it is cut into computes the streams again: with
half of this eight prompts of 40 tokens took a third longer."""
_MIN_TOKENS = 8
_WEIGHT = 0.5


class PrefillPace:
    """Follows how fast this machine computes prompts. ``most``: the limit until that is known, in tokens.

    A fixed number of tokens is milliseconds on one machine and seconds on another, or on the same one when it
    is busy.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tokens_per_s: float | None = None

    def observe(self, num_tokens: int, seconds: float) -> None:
        """A pass over ``num_tokens`` tokens took ``seconds``. Small passes say nothing about prompts."""
        if num_tokens < _MIN_TOKENS or seconds <= 0:
            return
        rate = num_tokens / seconds
        known = self._tokens_per_s
        self._tokens_per_s = rate if known is None else known + _WEIGHT * (rate - known)

    @property
    def num_tokens(self) -> int:
        """Prompt tokens for the next step beside decoding sequences."""
        if self._tokens_per_s is None:
            return self._most
        return min(self._most, max(_MIN_TOKENS, int(self._tokens_per_s * _TARGET_S)))
