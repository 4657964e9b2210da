"""The border between serving and an engine: request, output, and the ``Engine`` protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from interlock.core.constraint import LoweredConstraint
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.core.timings import RequestTimings
from interlock.core.trace import TokenTrace

EnginePhase = Literal[
    "unloaded", "starting", "loading_model", "warming_up", "ready", "restarting", "stopping", "failed"
]
EngineFinishReason = Literal["stop", "length", "abort", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingBudget:
    """After ``max_tokens`` thinking tokens without ``close_ids`` in the output, ``close_ids`` are forced.

    open_ids: where the model itself may open thinking: counting starts after these ids, and nothing is
    forced in an output that does not start with them. Empty: thinking is open from the first token.
    reopen_ids: right after ``close_ids`` these open thinking again, and the same count goes on. Empty: it cannot.
    end_ids: each of them ends thinking for good, without ``close_ids``: what a call begins with, for models whose calls
        end it.
    rest: what may follow ``close_ids``, for engines that cannot go on in the middle of the request's constraint.
    """

    max_tokens: int
    close_ids: tuple[int, ...]
    open_ids: tuple[int, ...] = ()
    reopen_ids: tuple[int, ...] = ()
    end_ids: tuple[int, ...] = ()
    rest: LoweredConstraint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthClosing:
    """A constrained output that would be cut off by its budget is brought to a legal end within it, and its finish reason stays
    ``length``. openers: what begins calls, which no ending does. calls: calls that have begun are closed too; else
    nothing is behind an opener.
    """

    openers: tuple[int, ...] = ()
    calls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """One sequence to generate. Made by ``resolve`` only.

    prompt_ids: token ids of the whole prompt, at least one.
    stop_ids: ids that end the output where the constraint allows an end; never part of ``token_ids``.
    max_tokens: most tokens to generate, at least 1.
    priority: higher runs first. deadline_s: seconds from arrival after which it ends with
    ``request_timeout``. report_accepting: fill ``EngineOutput.is_accepting`` on every output.
    trace: fill ``EngineOutput.trace``; tokens without a choice are computed like others then.
    resume_ids: output of this request that was delivered before its worker died; generation goes on after
        it as if nothing had happened, and ``max_tokens`` counts it.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    sampling: SamplingParams
    max_tokens: int
    stop_ids: tuple[int, ...] = ()
    constraint: LoweredConstraint | None = None
    limits: TokenLimits = TokenLimits()
    thinking: ThinkingBudget | None = None
    closing: LengthClosing | None = None
    priority: int = 0
    deadline_s: float | None = None
    report_accepting: bool = False
    trace: bool = False
    resume_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """Log probability of the token chosen, and of the best alternatives (id, logprob), best first: after bias and
    penalties and before temperature, of the distribution that ``SamplingParams.logprobs_of`` says.

    Of a prompt's token: before bias and penalties; ``None`` for the first one, before which nothing stands.
    rank: among all ids, from 1; of a prompt's token only.
    """

    token_id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFailure:
    """Why a request ended with ``finish_reason == "error"``: a code of ``errors.CATALOG`` and a message."""

    code: str
    message: str


class EngineOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """New tokens of one request. The last one of a request has ``finish_reason`` set.

    finish_reason: ``stop`` a stop id or the end of the grammar; ``length`` the token or context budget, also where
        the output was closed for it;
        ``abort`` aborted on request; ``error`` see ``failure``.
    is_accepting: the constraint may end after ``token_ids``; ``None`` where not reported (free requests
        always, constrained ones unless finished or ``report_accepting``).
    prompt_logprobs: one for each token of the prompt, where asked for; on the first output that has tokens.
    trace: one for each of ``token_ids``, where asked for; none where logits had no probabilities.
    timings: on the last output, where a worker knows them.
    num_prompt_tokens, num_cached_tokens: of the whole request, repeated on every output.
    """

    request_id: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()
    trace: tuple[TokenTrace, ...] = ()
    finish_reason: EngineFinishReason | None = None
    failure: EngineFailure | None = None
    is_accepting: bool | None = None
    timings: RequestTimings | None = None
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """A snapshot for /metrics and the admin page; counters since the worker started.

    num_cached_tokens: prompt tokens that were not prefilled again. num_restored_tokens: prompt and output that came back
        from memory of the host. num_states_saved, num_states_restored, num_states_evicted, prompt_cache_bytes: of what is
        kept there. num_forced_tokens: generated without a choice, since
        the grammar leaves none. num_draft_tokens, num_accepted_tokens: guessed, and guessed right. num_vetoed_tokens: taken out of masks
        by guards. num_preempted: times that a request lost its
        slot. num_backtracked: times that guards took tokens of a request back, which num_generated_tokens counts. num_resumed: requests that went on after the death of a worker.
    step_s holds forward_s (from launch to selection), and that holds mask_s.
    """

    num_waiting: int = 0
    num_running: int = 0
    num_slots: int = 0
    num_steps: int = 0
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_restored_tokens: int = 0
    num_states_saved: int = 0
    num_states_restored: int = 0
    num_states_evicted: int = 0
    prompt_cache_bytes: int = 0
    num_generated_tokens: int = 0
    num_forced_tokens: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    num_vetoed_tokens: int = 0
    num_preempted: int = 0
    num_backtracked: int = 0
    num_resumed: int = 0
    num_grammar_compiles: int = 0
    num_grammar_cache_hits: int = 0
    grammar_cache_bytes: int = 0
    step_s: float = 0.0
    forward_s: float = 0.0
    mask_s: float = 0.0
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """Who holds a constrained answer to its constraint. masks: forbids tokens before one is chosen. tokens: checks those
    that were chosen. guards: holds what no grammar can say; ``None``: nobody, so keywords that need one are refused."""

    masks: str = "interlock"
    tokens: str = "interlock"
    guards: str | None = "interlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTraits:
    """continues_constraints: it can go on in the middle of a constraint; where not, it needs ``ThinkingBudget.rest``.
    closes_on_length: it heeds ``EngineRequest.closing``."""

    continues_constraints: bool = True
    closes_on_length: bool = True
    enforcement: Enforcement = Enforcement()


class Engine(Protocol):
    """Something that turns prompt ids into output ids under a constraint.

    One asyncio loop owns it; all methods are called on that loop. Errors are ``InterlockError``.
    """

    @property
    def phase(self) -> EnginePhase:
        """What the engine is doing now. ``generate`` works in ``ready``. ``unloaded``: it can be started."""
        ...

    @property
    def max_context_tokens(self) -> int:
        """Most tokens of prompt plus output. Valid once the engine was ready."""
        ...

    @property
    def traits(self) -> EngineTraits:
        """What is particular to this kind of engine."""
        ...

    def check(self, request: EngineRequest) -> None:
        """Raises the ``InterlockError`` of a request that needs what this engine does not have. Called before any
        response header is sent; cheap."""
        ...

    async def start(self) -> None:
        """Start and return when ready. Raises when it cannot start."""
        ...

    async def prepare(self, constraint: LoweredConstraint) -> None:
        """Compile and cache ``constraint``. Raises the error a client should see (400 or 500). Called
        before any response header is sent; cheap when cached."""
        ...

    def generate(self, request: EngineRequest) -> AsyncIterator[EngineOutput]:
        """Outputs of one request, ending with exactly one that has ``finish_reason``. Closing the iterator
        early aborts the request. It survives the death of a worker, but ``error`` with code ``worker_died``
        ends one that too many workers died of."""
        ...

    async def abort(self, request_id: str) -> None:
        """End a request; unknown ids are ignored."""
        ...

    async def stats(self) -> EngineStats: ...

    async def stop(self, drain_s: float = 0.0) -> None:
        """Let running requests finish for up to ``drain_s`` seconds, then stop everything."""
        ...
