"""One forward pass: launch it, fill the masks while it runs, select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Seq
from functools import partial

import msgspec

from interlock import log
from interlock.constraints.bitmask import Mask
from interlock.constraints.mask_batch import MaskBatch
from interlock.core.engine import EngineFailure
from interlock.core.sampling import SamplingParams
from interlock.engine.batch import Draft, sampling_rows, score_rows, step_batch
from interlock.engine.pace import PrefillPace
from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence
from interlock.engine.step_cost import StepCost
from interlock.engine.step_stats import StepStats
from interlock.runners.base import ModelRunner, StepBatch
from interlock.sampling.base import Choice, SamplingRow

_log = log.get(__name__)


class Block(msgspec.Struct, frozen=True):
    """What a pass says about a sequence whose next token was wanted.

    draft: the tokens that the pass computed behind the known ones. num_usable: how many of them have a mask behind
    them. choices: one for each of those, and one before the first.
    """

    sequence: Sequence
    draft: Draft
    num_usable: int
    choices: Seq[Choice]


class _Part(msgspec.Struct, frozen=True):
    """What of a chunk's logits is wanted: of which positions the next token is scored, and whether one is chosen."""

    sequence: Sequence
    scored: range
    is_sampled: bool


class Execution:
    """Runs passes, and knows what they cost.

    max_draft_tokens: most tokens of one draft.
    """

    def __init__(
        self,
        runner: ModelRunner,
        vocab_size: int,
        stats: StepStats,
        *,
        max_draft_tokens: int,
        mask_threads: int,
    ) -> None:
        self._runner = runner
        self._vocab_size = vocab_size
        self._stats = stats
        max_rows = runner.info.num_slots * (1 + max_draft_tokens)
        self.cost = StepCost(runner.info.max_part_tokens)
        self.pace = PrefillPace(runner.info.max_batch_tokens)
        self._masks = MaskBatch(max_rows, vocab_size, threads=mask_threads)

    def run(self, chunks: Seq[Chunk], drafts: Seq[Draft]) -> list[Block]:
        """Compute ``chunks`` with their ``drafts`` behind them. Afterwards the caches hold both.

        Raises ``ForwardError``; then the caches of these sequences hold nothing.
        """
        sampled = [
            (chunk.sequence, draft) for chunk, draft in zip(chunks, drafts, strict=True) if chunk.needs_logits
        ]
        parts = [_Part(chunk.sequence, chunk.scored, chunk.needs_logits) for chunk in chunks]
        batch = step_batch(chunks, drafts)
        mask_s, forward_s = self._stats.mask_s, self._stats.forward_s
        with self._stats.timed("forward_s"):
            choices, sizes = self._forward(batch, parts, sampled)
        self._observe(batch, self._stats.forward_s - forward_s)
        _share_mask_s([sequence for sequence, _ in sampled], self._stats.mask_s - mask_s)
        for chunk in chunks:
            chunk.sequence.num_computed_tokens += chunk.num_tokens
        return _blocks(parts, list(zip(sampled, sizes, strict=True)), choices)

    def _observe(self, batch: StepBatch, seconds: float) -> None:
        """Learn from a pass that took ``seconds``."""
        self.pace.observe(len(batch.token_ids), seconds)
        self.cost.observe(Counter(batch.slots.tolist()), len(batch.logits_at), seconds)

    def _forward(
        self, batch: StepBatch, parts: Seq[_Part], sampled: Seq[tuple[Sequence, Draft]]
    ) -> tuple[Seq[Choice], list[int]]:
        """A choice for each row, and how many draft tokens of each of ``sampled`` are usable."""
        forward = self._runner.launch(batch)
        if not len(batch.logits_at):
            forward.discard()
            return (), []
        fill = partial(self._timed_rows, parts, sampled)
        is_free = all(sequence.constraint is None for sequence, _ in sampled)
        try:
            # Where there is nothing to fill, another thread costs more than it takes over.
            rows, sizes = fill() if is_free else forward.beside(fill)
        except BaseException:
            forward.discard()  # no pass may outlive its step
            raise
        return [self._checked(choice) for choice in forward.select(rows).choices], sizes

    def _checked(self, choice: Choice) -> Choice:
        """A runner that chooses an id of its padding has failed this row."""
        if choice.token_id < self._vocab_size:
            return choice
        return Choice(token_id=-1, error="sampling_failed")

    def _timed_rows(
        self, parts: Seq[_Part], sampled: Seq[tuple[Sequence, Draft]]
    ) -> tuple[list[SamplingRow], list[int]]:
        with self._stats.timed("mask_s"):
            return self._rows(parts, sampled)

    def _rows(
        self, parts: Seq[_Part], sampled: Seq[tuple[Sequence, Draft]]
    ) -> tuple[list[SamplingRow], list[int]]:
        """The rows of all, and how many draft tokens of each are usable."""
        masks = self._masks.fill(
            [sequence.constraint for sequence, _ in sampled], [draft for _, draft in sampled]
        )
        to_sample = zip(sampled, masks, strict=True)
        rows: list[SamplingRow] = []
        for part in parts:
            rows += score_rows(part.sequence, part.scored, self._vocab_size)
            if part.is_sampled:
                (sequence, draft), own = next(to_sample)
                rows += self._rows_of(sequence, draft, own)
        return rows, [len(own) - 1 for own in masks]

    def _rows_of(self, sequence: Sequence, draft: Draft, masks: Seq[Mask | None]) -> list[SamplingRow]:
        """Where that fails, rows whose choice nobody looks at: the sequence ends by its ``fault``."""
        try:
            if sequence.constraint is None and sequence.request.constraint is not None:
                raise RuntimeError("a constrained request has no matcher")  # never a free choice
            return sampling_rows(sequence, draft, masks, self._vocab_size)
        except Exception as error:  # noqa: BLE001 - the edge of a request: its limits and penalties harm no other
            _log.exception("the rows of a request could not be made; it ends")
            message = f"{type(error).__name__}: {error}"
            sequence.fault = EngineFailure(code="internal_error", message=message)
            row = SamplingRow(params=SamplingParams(temperature=0.0), position=0, vocab_size=self._vocab_size)
            return [row] * (len(draft) + 1)


def _blocks(
    parts: Seq[_Part], sampled: Seq[tuple[tuple[Sequence, Draft], int]], choices: Seq[Choice]
) -> list[Block]:
    """Deal the choices out in the order of their rows; what is scored goes to its sequence."""
    blocks, start, to_deal = [], 0, iter(sampled)
    for part in parts:
        _keep_scores(part.sequence, choices[start : start + len(part.scored)])
        start += len(part.scored)
        if part.is_sampled:
            (sequence, draft), num_usable = next(to_deal)
            blocks.append(Block(sequence, draft, num_usable, choices[start : start + num_usable + 1]))
            start += len(draft) + 1
    return blocks


def _keep_scores(sequence: Sequence, choices: Seq[Choice]) -> None:
    for choice in choices:
        if choice.logprob is None or sequence.prompt_scores is None:
            sequence.fault = EngineFailure(code="sampling_failed", message="the prompt's logits are unusable")
            return
        sequence.prompt_scores.append(choice.logprob)


def _share_mask_s(sequences: Seq[Sequence], seconds: float) -> None:
    """Each row of a constraint costs about the same."""
    owners = [sequence for sequence in sequences if sequence.constraint is not None]
    for owner in owners:
        owner.meter.mask_s += seconds / len(owners)
