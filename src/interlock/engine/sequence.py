"""``Sequence``: the one mutable object of a request inside the worker."""

from __future__ import annotations

import enum
import math
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from interlock.core.engine import EngineFailure, EngineRequest, TokenLogprob
from interlock.engine.committed import Committed
from interlock.engine.draft_rates import Rates
from interlock.engine.penalties import PenaltyState
from interlock.engine.request_meter import RequestMeter
from interlock.engine.token_limits import TokenLimiter
from interlock.sampling.base import Choice

if TYPE_CHECKING:
    from interlock.constraints.state import ConstraintState


class SequenceStatus(enum.Enum):
    """Where a sequence stands. Only ``RUNNING`` holds a slot; ``PAUSED`` waits for its reader."""

    WAITING_FOR_GRAMMAR = "waiting_for_grammar"
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"


@dataclass(slots=True, eq=False, kw_only=True)
class Sequence:
    """A request being generated. Compared by identity.

    arrival: rank in the queue, at first by arrival; earlier is smaller. deadline: on the monotonic clock,
        ``None`` for none.
    max_output_tokens: what the request and the context allow together, at least 1.
    token_ids: prompt, then output. slot: where the runner keeps its cache, while running.
    num_computed_tokens: how many of ``token_ids`` are in that cache; going back to 0 replays prompt and
        committed output, and nothing else of the sequence changes.
    num_new_tokens: how many of ``token_ids`` its last step added, forced ones included.
    num_cached_tokens: prompt tokens that were in the cache already when it first ran, ``None`` before that.
    turn_ends_at: output tokens from which on it gives its slot to one that waits, while running.
    num_preemptions: times that it lost its slot.
    fault: what broke on it outside its constraint, which ends it.
    undecided: a choice behind its last token that a search beside the step decides about.
    held: committed parts that the request has not been told yet, one token each: they may be taken back.
    num_backtracks: times that tokens were.
    num_renewals: times that it got another matcher after it had used up what its first one shared.
    prompt_scores: of the prompt's tokens as far as they have been computed, the first one included; ``None`` where nobody
        wants them, or any more.
    meter: its times and counts.
    draft_rates: how often each method of guessing ahead was right here, by its name.
    """

    request: EngineRequest
    arrival: int
    max_output_tokens: int
    deadline: float | None = None
    status: SequenceStatus = SequenceStatus.WAITING
    token_ids: list[int] = field(default_factory=list)
    constraint: ConstraintState | None = None
    penalties: PenaltyState | None = None
    limiter: TokenLimiter | None = None
    slot: int | None = None
    num_computed_tokens: int = 0
    num_new_tokens: int = 1
    num_cached_tokens: int | None = None
    turn_ends_at: float = math.inf
    num_preemptions: int = 0
    fault: EngineFailure | None = None
    undecided: Choice | None = None
    held: list[Committed] = field(default_factory=list)
    num_backtracks: int = 0
    num_renewals: int = 0
    prompt_scores: list[TokenLogprob] | None = None
    meter: RequestMeter = field(default_factory=RequestMeter)
    draft_rates: dict[str, Rates] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.token_ids.extend(self.request.prompt_ids)
        self.penalties = PenaltyState.of(self.request.sampling, self.request.prompt_ids)
        self.limiter = TokenLimiter.of(self.request)
        if self.request.sampling.prompt_logprobs is not None and not self.request.resume_ids:
            self.prompt_scores = [TokenLogprob(token_id=self.request.prompt_ids[0], logprob=None)]
        for token_id in self.request.resume_ids:
            self.append(token_id)

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.request.prompt_ids)

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_ids) - len(self.request.prompt_ids)

    @property
    def num_pending_tokens(self) -> int:
        """Tokens not yet in the cache."""
        return len(self.token_ids) - self.num_computed_tokens

    @property
    def num_reusable_tokens(self) -> int:
        """Tokens that may come from a cache: behind them stand logits that are wanted."""
        last = len(self.token_ids) - 1
        return last if self.prompt_scores is None else min(last, len(self.prompt_scores) - 1)

    @property
    def num_unscored_tokens(self) -> int:
        """Tokens of the prompt that are still to be scored."""
        return 0 if self.prompt_scores is None else self.num_prompt_tokens - len(self.prompt_scores)

    @property
    def num_vetoed(self) -> int:
        """Tokens that guards took out of its masks."""
        return 0 if self.constraint is None else self.constraint.num_vetoed

    @property
    def is_decoding(self) -> bool:
        """All but what its last step added is in the cache; else it is prefilling or replaying."""
        return self.num_pending_tokens <= self.num_new_tokens

    @property
    def search(self) -> Future[Any] | None:
        """Runs beside the step for it."""
        return None if self.constraint is None else self.constraint.search

    @property
    def is_searching(self) -> bool:
        """It says nothing before ``search`` is done."""
        search = self.search
        return search is not None and not search.done()

    @property
    def order(self) -> tuple[int, int]:
        """Sort key of service: priority, then arrival."""
        return (-self.request.priority, self.arrival)

    @property
    def output_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt_tokens :]

    def output_tail(self, num_tokens: int) -> list[int]:
        """The last ``num_tokens`` output tokens, or all if there are fewer."""
        return self.token_ids[max(self.num_prompt_tokens, len(self.token_ids) - num_tokens) :]

    def drop(self, num_tokens: int) -> None:
        """Take back the last ``num_tokens`` output tokens, none of which has been told."""
        self.undecided = None
        del self.token_ids[-num_tokens:]
        del self.held[-num_tokens:]
        if self.penalties is not None:
            self.penalties = PenaltyState.of(self.request.sampling, self.request.prompt_ids)
            assert self.penalties is not None
            for token_id in self.output_ids:
                self.penalties.add(token_id)

    def append(self, token_id: int) -> None:
        """Commit one output token."""
        self.token_ids.append(token_id)
        if self.penalties is not None:
            self.penalties.add(token_id)
