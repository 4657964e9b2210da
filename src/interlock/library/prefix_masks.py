"""Masks for whatever sequences a caller has, told apart by the tokens they have so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.constraints.mask_batch import MaskBatch
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.tokenizer import Vocabulary
from interlock.errors import InterlockError

Prefix = tuple[int, ...]


class Constrained(Protocol):
    """A ``Constraint`` or a ``Turn``."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    def state(self) -> ConstraintState | None: ...


class _Branch:
    """The sequences of one constraint: a state for each prefix that was asked for last. ``None`` stands for one that
    has ended."""

    def __init__(self, constrained: Constrained | None) -> None:
        self._constrained = constrained
        self._states: dict[Prefix, ConstraintState | None] = {}

    def restart(self) -> None:
        for state in self._states.values():
            if state is not None:
                state.close()
        self._states = {}

    def advance(self, prefixes: Sequence[Prefix]) -> dict[Prefix, ConstraintState | None]:
        """States for these prefixes; those of others are dropped. Known ones are reused, a known one that several
        prefixes go on from is copied, and what is not known is followed from its beginning."""
        if self._constrained is None:
            return dict.fromkeys(prefixes)
        wanted = dict.fromkeys(prefixes)
        old, self._states = self._states, {}
        for prefix in wanted:
            if prefix in old:
                self._states[prefix] = old.pop(prefix)
        children: dict[Prefix, list[Prefix]] = defaultdict(list)
        for prefix in wanted:
            if prefix not in self._states:
                children[prefix[:-1]].append(prefix)
        for parent, ways in children.items():
            known = parent in old
            state = old.pop(parent) if known else self._followed(parent) if ways[0] else self._start()
            for prefix in ways[1:]:
                self._states[prefix] = _after(None if state is None else state.clone(), prefix)
            self._states[ways[0]] = _after(state, ways[0])
        for state in old.values():
            if state is not None:
                state.close()
        return self._states

    def _start(self) -> ConstraintState | None:
        assert self._constrained is not None
        return self._constrained.state()

    def _followed(self, prefix: Prefix) -> ConstraintState | None:
        state = self._start()
        for end in range(1, len(prefix) + 1):
            state = _after(state, prefix[:end])
        return state


def _after(state: ConstraintState | None, prefix: Prefix) -> ConstraintState | None:
    """``state`` after the last token of ``prefix``. What comes behind an end (padding) changes nothing."""
    if state is not None and prefix and not state.is_terminated:
        state.accept(prefix[-1])
    return state


class PrefixMasks:
    """Follows sequences by their tokens, so that they may be reordered, copied, cut back and dropped at will (beams,
    several answers to a prompt, assisted decoding). One generation at a time; not thread-safe.

    constraints: one for each prompt; ``None``: free. All of one vocabulary. threads: for masks, 0 for one a core.
    """

    def __init__(self, constraints: Sequence[Constrained | None], *, threads: int = 0) -> None:
        vocabularies = {id(one.vocabulary): one.vocabulary for one in constraints if one is not None}
        if len(vocabularies) != 1:
            raise InterlockError("invalid_value", "constraints of one vocabulary are needed, and at least one")
        self.vocabulary = next(iter(vocabularies.values()))
        self._branches = [_Branch(one) for one in constraints]
        self._threads = threads
        self._batch: MaskBatch | None = None
        self._num_rows = 0

    def restart(self) -> None:
        """Forget all sequences."""
        for branch in self._branches:
            branch.restart()

    def fill(self, outputs: Sequence[Prefix]) -> list[Mask | None]:
        """For each output so far the mask of its next token: int32 [ceil(vocab/32)], valid until the next call, or
        ``None`` where every id is allowed. outputs: in the order of the constraints, each prompt with as many as the
        others. Only stop ids follow an end.

        Raises ``InterlockError``: ``matcher_failed`` where an output breaks its constraint or the grammar engine
        fails, ``no_token_allowed``.
        """
        each, rest = divmod(len(outputs), len(self._branches))
        if rest or not each:
            raise InterlockError(
                "invalid_value", f"{len(outputs)} sequences do not divide among {len(self._branches)} prompts"
            )
        try:
            states = [
                found[output]
                for index, branch in enumerate(self._branches)
                for own in [outputs[index * each : (index + 1) * each]]
                for found in [branch.advance(own)]
                for output in own
            ]
            return self._masks(states)
        except MatcherError as error:
            self.restart()
            raise InterlockError("matcher_failed", f"the constraint cannot go on: {error}") from None

    def _masks(self, states: Sequence[ConstraintState | None]) -> list[Mask | None]:
        if self._batch is None or self._num_rows < len(states):
            self._num_rows = len(states)
            self._batch = MaskBatch(self._num_rows, self.vocabulary.size, threads=self._threads)
        distinct = {id(state): state for state in states if state is not None}
        filled = dict(zip(distinct, self._batch.fill(list(distinct.values())), strict=True))
        masks = [None if state is None else filled[id(state)][0] for state in states]
        for state, mask in zip(states, masks, strict=True):
            if state is not None and state.error is not None:
                raise MatcherError(state.error)
            if mask is not None and not bitmask.any_allowed(mask):
                raise InterlockError("no_token_allowed", "the constraint leaves no token to choose")
        return masks
