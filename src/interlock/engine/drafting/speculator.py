"""Which guesses are verified: those whose expected yield is worth what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from interlock import log
from interlock.config import SpeculativeConfig
from interlock.constraints.draft_plan import LegalDraft, legal_draft
from interlock.constraints.providers.base import MatcherError
from interlock.engine.draft_rates import Rates
from interlock.engine.drafting.base import DraftProposer
from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence
from interlock.engine.step_cost import StepCost

_log = log.get(__name__)

_SMOOTHING = 0.2


@dataclass(frozen=True, slots=True)
class _Guess:
    """What may follow the first ``place`` tokens of a sequence, and the method it comes from."""

    method: str
    legal: LegalDraft
    place: int


@dataclass(frozen=True, slots=True)
class _Step:
    """Tokens for each slot and rows of logits in a step, and how many tokens it is expected to give."""

    sizes: dict[int, int]
    num_rows: int
    expected: float

    def with_draft(self, slot: int, yields: Seq[float]) -> _Step:
        """With a draft behind ``slot``, of as many tokens as ``yields``."""
        size = len(yields)
        return _Step(
            self.sizes | {slot: self.sizes[slot] + size}, self.num_rows + size, self.expected + sum(yields)
        )


class Speculator:
    """Drafts for one engine.

    stop_ids: a guess ends before one of these, behind which nothing follows. forced_tokens: as in ``EngineConfig``.
    clock: seconds.
    """

    def __init__(
        self,
        proposers: Seq[DraftProposer],
        config: SpeculativeConfig,
        stop_ids: frozenset[int],
        *,
        forced_tokens: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.max_tokens = config.num_speculative_tokens
        self._proposers = proposers
        self._adaptive = config.adaptive
        self._stop_ids = stop_ids
        self._forced_tokens = forced_tokens
        self._clock = clock
        self._rates = {proposer.name: Rates() for proposer in proposers}
        self._proposal_s = {proposer.name: 0.0 for proposer in proposers}  # smoothed, for one call
        self._guesses: dict[str, _Guess] = {}  # of the step in progress, by request id

    def drafts(self, chunks: Seq[Chunk], max_total: int, cost: StepCost) -> list[list[int]]:
        """For each of ``chunks`` the tokens to verify behind it, together at most ``max_total``."""
        wanted = [chunk.sequence for chunk in chunks if chunk.needs_logits]
        step = _Step({chunk.slot: chunk.num_tokens for chunk in chunks}, len(wanted), float(len(wanted)))
        self._guesses = self._guess(wanted, step, cost) if wanted else {}
        drafts: list[list[int]] = []
        for chunk in chunks:
            guess = self._guesses.get(chunk.sequence.request_id) if chunk.needs_logits else None
            if guess is None:
                drafts.append([])
                continue
            yields = self._yields(chunk.sequence, guess)[: max_total - sum(map(len, drafts))]
            size = self._best_size(yields, step, chunk.slot, cost)
            step = step.with_draft(chunk.slot, yields[:size])
            drafts.append(list(guess.legal.token_ids[:size]))
        return drafts

    def observe(self, sequences: Iterable[Sequence]) -> None:
        """Judge the guesses of the last ``drafts`` by what has become of ``sequences``, also those that were not worth
        verifying: a method that is right again is noticed at no cost."""
        for sequence in sequences:
            guess = self._guesses.get(sequence.request_id)
            if guess is None:
                continue
            pairs = list(zip(guess.legal.token_ids, sequence.token_ids[guess.place :], strict=False))
            num_right = next((i for i, (guessed, said) in enumerate(pairs) if guessed != said), len(pairs))
            for rates in (self._rates[guess.method], self._rates_of(sequence, guess.method)):
                rates.observe(
                    sum(guess.legal.is_guessed[: len(pairs)]), sum(guess.legal.is_guessed[:num_right])
                )

    def close(self) -> None:
        """Free what the proposers hold. Idempotent."""
        for proposer in self._proposers:
            proposer.close()

    def _guess(self, sequences: Seq[Sequence], step: _Step, cost: StepCost) -> dict[str, _Guess]:
        """The first legal guess for each sequence that any method has."""
        guesses: dict[str, _Guess] = {}
        for proposer in self._proposers:
            asked = [one for one in sequences if one.request_id not in guesses and self._limit(one) > 0]
            if not asked or not self._is_worth_asking(proposer.name, cost.seconds(step.sizes, step.num_rows)):
                continue
            started = self._clock()
            proposals = self._proposals(proposer, asked)
            seconds = self._clock() - started
            self._proposal_s[proposer.name] += _SMOOTHING * (seconds - self._proposal_s[proposer.name])
            for sequence, proposal in zip(asked, proposals, strict=True):
                legal = self._legal(sequence, proposal)
                if legal.token_ids:
                    guesses[sequence.request_id] = _Guess(proposer.name, legal, len(sequence.token_ids))
        return guesses

    def _proposals(self, proposer: DraftProposer, asked: Seq[Sequence]) -> list[list[int]]:
        try:
            return proposer.propose(asked, self.max_tokens)
        except Exception:  # noqa: BLE001 - a guess is optional, and harms nobody
            _log.exception("%s failed; nothing is guessed in this step", proposer.name)
            return [[] for _ in asked]

    def _legal(self, sequence: Sequence, proposal: Seq[int]) -> LegalDraft:
        stop_ids = sequence.request.stop_ids
        end = next(
            (i for i, one in enumerate(proposal) if one in self._stop_ids or one in stop_ids), len(proposal)
        )
        try:
            return legal_draft(sequence.constraint, proposal[:end], self._limit(sequence))
        except MatcherError:  # the matcher has failed before; the step will say so
            return LegalDraft()

    def _limit(self, sequence: Sequence) -> int:
        """Room for a draft: behind it one more token is chosen."""
        return min(self.max_tokens, sequence.max_output_tokens - sequence.num_output_tokens - 1)

    def _rates_of(self, sequence: Sequence, method: str) -> Rates:
        rates = sequence.draft_rates.get(method)
        if rates is None:
            rates = sequence.draft_rates[method] = self._rates[method].copy()
        return rates

    def _yields(self, sequence: Sequence, guess: _Guess) -> list[float]:
        """How many steps each token of the draft is expected to save. A right guess saves one; where forced tokens need
        no step of their own anyway, only together with what is forced behind it."""
        legal = guess.legal
        likely = iter(self._rates_of(sequence, guess.method).likelihoods(legal.num_guessed))
        ends = [*legal.is_guessed[1:], legal.is_complete]
        each_counts = not self._forced_tokens or sequence.request.sampling.logprobs is not None
        yields, current = [], 1.0 if each_counts else 0.0
        for is_guessed, is_end in zip(legal.is_guessed, ends, strict=True):
            current = next(likely) if is_guessed else current
            yields.append(current if is_end or each_counts else 0.0)
        return yields

    def _best_size(self, yields: Seq[float], step: _Step, slot: int, cost: StepCost) -> int:
        """How much of a draft behind ``slot`` gives most tokens for the time."""
        if not self._adaptive or not cost.is_known:
            return len(yields)
        steps = [step.with_draft(slot, yields[:size]) for size in range(len(yields) + 1)]
        rates = [one.expected / cost.seconds(one.sizes, one.num_rows) for one in steps]
        return rates.index(max(rates))

    def _is_worth_asking(self, method: str, step_s: float) -> bool:
        """Whether the time that guesses save is more than it takes to make them; ``step_s`` is 0 where no time is
        known."""
        if not self._adaptive or step_s == 0:
            return True
        if sum(self._rates[method].likelihoods(self.max_tokens)) * step_s > self._proposal_s[method]:
            return True
        self._rates[method].forget()
        return False
