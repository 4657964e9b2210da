"""Times and counts of one request in the worker."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.core.timings import RequestTimings


@dataclass(slots=True, kw_only=True)
class RequestMeter:
    """Moments on the engine's clock; ``None`` for what has not happened yet."""

    submitted_at: float = 0.0
    first_pass_at: float | None = None
    first_token_at: float | None = None
    mask_s: float = 0.0
    num_forced: int = 0
    num_drafted: int = 0
    num_accepted: int = 0

    def passes(self, now: float) -> None:
        """A pass over some of its tokens is about to start."""
        if self.first_pass_at is None:
            self.first_pass_at = now

    def chose(self, now: float) -> None:
        """A pass gave it a token."""
        if self.first_token_at is None:
            self.first_token_at = now

    def timings(
        self, now: float, *, num_vetoed: int, num_preempted: int, num_backtracked: int
    ) -> RequestTimings:
        """What it is if the request ends now."""
        first_pass_at = now if self.first_pass_at is None else self.first_pass_at
        first_token_at = now if self.first_token_at is None else self.first_token_at
        return RequestTimings(
            queue_s=first_pass_at - self.submitted_at,
            prefill_s=first_token_at - first_pass_at,
            decode_s=now - first_token_at,
            mask_s=self.mask_s,
            num_forced=self.num_forced,
            num_drafted=self.num_drafted,
            num_accepted=self.num_accepted,
            num_vetoed=num_vetoed,
            num_preempted=num_preempted,
            num_backtracked=num_backtracked,
        )
