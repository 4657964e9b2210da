"""A small model guesses what the large one will say."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

import numpy as np

from interlock.constraints import bitmask
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.sampling import SamplingParams
from interlock.engine.common_prefix import common_prefix
from interlock.engine.sequence import Sequence
from interlock.runners.base import ForwardError, ModelRunner, StepBatch
from interlock.sampling.base import Choice, SamplingRow

_GREEDY = SamplingParams(temperature=0.0)


@dataclass(slots=True, eq=False)
class _Branch:
    """A sequence as the draft model sees it. pending: what it has to compute next."""

    sequence: Sequence
    slot: int
    pending: list[int]
    probe: ConstraintState | None
    guess: list[int] = field(default_factory=list)


class DraftModelProposer:
    """Greedy guesses of a model with the same vocabulary, held to the sequence's grammar. It has a slot for each of the
    engine's and remembers what is in it, so a sequence may come and go as it likes; one whose prompt is not yet in it
    gets no guess until it is."""

    name = "draft_model"

    def __init__(self, runner: ModelRunner, vocab_size: int) -> None:
        self._runner = runner
        self._vocab_size = vocab_size
        self._held: list[list[int]] = [[] for _ in range(runner.info.num_slots)]
        self._row = bitmask.allocate(1, vocab_size)[0]

    def propose(self, sequences: Seq[Sequence], limit: int) -> list[list[int]]:
        branches = [self._branch(sequence, limit) for sequence in sequences]
        ready = [branch for branch in branches if branch is not None]
        try:
            growing = self._catch_up(ready)
            while growing:
                growing = [branch for branch in self._grow(growing) if len(branch.guess) < limit]
        except ForwardError:
            for branch in ready:
                self._runner.truncate(branch.slot, 0)
                self._held[branch.slot] = []
        for branch in ready:
            if branch.probe is not None:
                branch.probe.close()
        return [[] if branch is None else branch.guess for branch in branches]

    def close(self) -> None:
        self._runner.close()

    def _branch(self, sequence: Sequence, limit: int) -> _Branch | None:
        slot, ids = sequence.slot, sequence.token_ids
        if slot is None or len(ids) + limit > self._runner.info.context_tokens:
            return None
        held = self._held[slot]
        num_common = common_prefix(held, ids, min(len(held), len(ids) - 1))
        if num_common < len(held):
            self._runner.truncate(slot, num_common)
            del held[num_common:]
        probe = None if sequence.constraint is None else sequence.constraint.clone()
        return _Branch(sequence, slot, ids[num_common:], probe)

    def _catch_up(self, branches: list[_Branch]) -> list[_Branch]:
        """Compute what is pending but for the last token, at most a step's worth; those that have got there."""
        room = self._runner.info.max_batch_tokens
        parts: list[tuple[_Branch, list[int]]] = []
        for branch in branches:
            part = branch.pending[: min(len(branch.pending) - 1, room)]
            if part:
                parts.append((branch, part))
                room -= len(part)
        if parts:
            self._launch(parts, with_logits=False)
        for branch, part in parts:
            del branch.pending[: len(part)]
        return [branch for branch in branches if len(branch.pending) == 1]

    def _grow(self, branches: list[_Branch]) -> list[_Branch]:
        """Guess one more token for each; those that can go on."""
        choices = self._launch([(branch, branch.pending) for branch in branches], with_logits=True)
        going_on = []
        for branch, choice in zip(branches, choices, strict=True):
            if choice.error is None and _advance(branch, choice.token_id):
                branch.guess.append(choice.token_id)
                branch.pending = [choice.token_id]
                going_on.append(branch)
        return going_on

    def _launch(self, parts: list[tuple[_Branch, list[int]]], *, with_logits: bool) -> tuple[Choice, ...]:
        token_ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        for branch, ids in parts:
            held = self._held[branch.slot]
            token_ids += ids
            positions += range(len(held), len(held) + len(ids))
            slots += [branch.slot] * len(ids)
            held += ids
        num_rows = len(token_ids) if with_logits else 0
        forward = self._runner.launch(
            StepBatch(
                token_ids=np.array(token_ids, dtype=np.int32),
                positions=np.array(positions, dtype=np.int32),
                slots=np.array(slots, dtype=np.int32),
                logits_at=np.arange(num_rows, dtype=np.int32),
            )
        )
        if not with_logits:
            forward.discard()
            return ()
        return forward.select([self._sampling_row(branch) for branch, _ in parts]).choices

    def _sampling_row(self, branch: _Branch) -> SamplingRow:
        mask = None
        if branch.probe is not None:
            try:
                row = self._row.copy()
                mask = row if branch.probe.fill_if_any(row) else None
            except MatcherError:
                mask = np.zeros_like(self._row)
        position = branch.sequence.num_output_tokens + len(branch.guess)
        return SamplingRow(params=_GREEDY, position=position, vocab_size=self._vocab_size, mask=mask)


def _advance(branch: _Branch, token_id: int) -> bool:
    """Whether the grammar takes the token."""
    if branch.probe is None:
        return True
    try:
        branch.probe.accept(token_id)
    except MatcherError:
        return False
    return True
