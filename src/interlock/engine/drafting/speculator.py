"""Which guesses are verified: those whose expected yield is worth what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from interlock.config import SpeculativeConfig
from interlock.constraints.draft_plan import LegalDraft, legal_draft
from interlock.constraints.providers.base import MatcherError
from interlock.engine.draft_rates import Rates
from interlock.engine.drafting.base import DraftProposer
from interlock.engine.drafting.cost import StepCost
from interlock.engine.execution import Block
from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence

_SMOOTHING = 0.2


@dataclass(frozen=True, slots=True)
class _Guess:
    """A guess and the method it comes from."""

    method: str
    legal: LegalDraft


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
        self._cost = StepCost()
        self._rates = {proposer.name: Rates() for proposer in proposers}
        self._proposal_s = {proposer.name: 0.0 for proposer in proposers}  # smoothed, for one call
        self._guesses: dict[str, _Guess] = {}  # of the step in progress, by request id

    def drafts(self, chunks: Seq[Chunk], max_total: int) -> list[list[int]]:
        """For each of ``chunks`` the tokens to verify behind it, together at most ``max_total``."""
        wanted = [chunk.sequence for chunk in chunks if chunk.needs_logits]
        self._guesses = self._guess(wanted, sum(chunk.num_tokens for chunk in chunks)) if wanted else {}
        num_tokens, num_rows, total = sum(chunk.num_tokens for chunk in chunks), len(wanted), 0
        expected = float(len(wanted))
        drafts: list[list[int]] = []
        for chunk in chunks:
            guess = self._guesses.get(chunk.sequence.request_id) if chunk.needs_logits else None
            if guess is None:
                drafts.append([])
                continue
            yields = self._yields(chunk.sequence, guess)[: max_total - total]
            size = self._best_size(yields, expected, num_tokens + total, num_rows + total)
            if size == 0:
                self._rates_of(chunk.sequence, guess.method).forget()
            else:
                expected += sum(yields[:size])
            total += size
            drafts.append(list(guess.legal.token_ids[:size]))
        return drafts

    def observe(self, chunks: Seq[Chunk], blocks: Seq[Block], num_accepted: Seq[int], seconds: float) -> None:
        """How the step went that the last ``drafts`` were for."""
        num_drafted = sum(len(block.draft) for block in blocks)
        num_tokens = sum(chunk.num_tokens for chunk in chunks) + num_drafted
        self._cost.observe(num_tokens, len(blocks) + num_drafted, seconds)
        for block, accepted in zip(blocks, num_accepted, strict=True):
            guess = self._guesses.get(block.sequence.request_id)
            if guess is not None and block.draft:
                is_guessed = guess.legal.is_guessed[: len(block.draft)]
                for rates in (self._rates[guess.method], self._rates_of(block.sequence, guess.method)):
                    rates.observe(sum(is_guessed), sum(is_guessed[:accepted]))

    def close(self) -> None:
        """Free what the proposers hold. Idempotent."""
        for proposer in self._proposers:
            proposer.close()

    def _guess(self, sequences: Seq[Sequence], num_tokens: int) -> dict[str, _Guess]:
        """The first legal guess for each sequence that any method has."""
        guesses: dict[str, _Guess] = {}
        for proposer in self._proposers:
            asked = [one for one in sequences if one.request_id not in guesses and self._limit(one) > 0]
            if not asked or not self._is_worth_asking(proposer.name, num_tokens, len(sequences)):
                continue
            started = self._clock()
            proposals = proposer.propose(asked, self.max_tokens)
            seconds = self._clock() - started
            self._proposal_s[proposer.name] += _SMOOTHING * (seconds - self._proposal_s[proposer.name])
            for sequence, proposal in zip(asked, proposals, strict=True):
                legal = self._legal(sequence, proposal)
                if legal.token_ids:
                    guesses[sequence.request_id] = _Guess(proposer.name, legal)
        return guesses

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

    def _best_size(self, yields: Seq[float], expected: float, num_tokens: int, num_rows: int) -> int:
        """How much of a draft gives most tokens for the time, in a step that would give ``expected`` without."""
        if not self._adaptive or not self._cost.is_known:
            return len(yields)
        best, best_rate = 0, expected / self._cost.seconds(num_tokens, num_rows)
        for size, likely in enumerate(yields, 1):
            expected += likely
            rate = expected / self._cost.seconds(num_tokens + size, num_rows + size)
            if rate > best_rate:
                best, best_rate = size, rate
        return best

    def _is_worth_asking(self, method: str, num_tokens: int, num_sequences: int) -> bool:
        """Whether the time that guesses save is more than it takes to make them."""
        if not self._adaptive or not self._cost.is_known:
            return True
        step_s = self._cost.seconds(num_tokens, num_sequences)
        if sum(self._rates[method].likelihoods(self.max_tokens)) * step_s > self._proposal_s[method]:
            return True
        self._rates[method].forget()
        return False
