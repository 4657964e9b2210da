"""The masks of one step: one reused buffer, filled by native threads where several matchers wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from interlock import log
from interlock.constraints import bitmask
from interlock.constraints.bitmask import Mask
from interlock.constraints.providers.base import Matcher, MatcherError, ParallelFiller
from interlock.constraints.state import ConstraintState

Job = tuple[ConstraintState, int]

_log = log.get(__name__)


class MaskBatch:
    """Room for ``max_rows`` masks of ``vocab_size`` ids. threads: for parallel fills, 0 for one a core."""

    def __init__(self, max_rows: int, vocab_size: int, *, threads: int = 0) -> None:
        self._rows = bitmask.allocate(max_rows, vocab_size)
        self._threads = threads
        self._fillers: dict[type[Matcher], ParallelFiller | None] = {}

    def fill(
        self, states: Sequence[ConstraintState | None], drafts: Sequence[Sequence[int]] | None = None
    ) -> list[list[Mask | None]]:
        """For each state its mask, and the masks behind each token of its draft as far as that is legal: views
        int32 [ceil(vocab/32)], valid until the next call; ``None`` where every id is allowed.

        A state that fails has its ``error`` set and an empty mask; it harms no other. A mask is also empty where
        the grammar leaves no token.
        """
        masks: list[list[Mask | None]] = []
        waiting: dict[type[Matcher], list[Job]] = defaultdict(list)
        index = 0
        for state, draft in zip(states, drafts or [()] * len(states), strict=True):
            if state is None:
                masks.append([None] * (len(draft) + 1))
            elif draft:
                masks.append(self._plan(state, draft, index))
                index += len(draft) + 1
            else:
                masks.append([self._begin(state, index, waiting)])
                index += 1
        for kind, jobs in waiting.items():
            self._fill_jobs(kind, jobs)
            for state_, row in jobs:
                if state_.error is not None:
                    self._rows[row] = 0
        return masks

    def _plan(self, state: ConstraintState, draft: Sequence[int], index: int) -> list[Mask | None]:
        rows = self._rows[index : index + len(draft) + 1]
        try:
            return state.plan(draft, rows)
        except MatcherError:
            rows[0] = 0
            return [rows[0]]

    def _begin(
        self, state: ConstraintState, index: int, waiting: dict[type[Matcher], list[Job]]
    ) -> Mask | None:
        row: Mask = self._rows[index]
        try:
            forced = state.forced_id()
        except MatcherError:
            row[:] = 0
            return row
        if forced is not None:
            bitmask.set_only(row, (forced,))
        elif state.matcher is None:
            return None
        else:
            waiting[type(state.matcher)].append((state, index))
        return row

    def _fill_jobs(self, kind: type[Matcher], jobs: list[Job]) -> None:
        if len(jobs) > 1 and self._filled_in_parallel(kind, jobs):
            return
        for state, index in jobs:
            with suppress(MatcherError):  # the state holds it
                state.fill(self._rows[index])

    def _filled_in_parallel(self, kind: type[Matcher], jobs: list[Job]) -> bool:
        """False where that cannot be done, or one of them failed unexpectedly: one by one shows which."""
        pairs = [(state.matcher, index) for state, index in jobs if state.matcher is not None]
        filler = self._filler(kind, pairs[0][0])
        if filler is None:
            return False
        try:
            filler.fill(pairs, self._rows)
        except Exception:  # noqa: BLE001 - the edge of a request: what one matcher does harms no other
            _log.exception("masks could not be filled together")
            return False
        return True

    def _filler(self, kind: type[Matcher], matcher: Matcher) -> ParallelFiller | None:
        if kind not in self._fillers:
            self._fillers[kind] = matcher.parallel_filler(self._threads)
        return self._fillers[kind]
