"""The border between Interlock and a grammar engine.

A provider compiles lowered grammars against one vocabulary; a compiled grammar makes matchers; a matcher
follows one sequence. Native errors and panics stop here and become ``MatcherError`` or
``InterlockError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from interlock.core.tokenizer import Vocabulary

SpentBy = Literal["itself", "others"]
Row = NDArray[np.int32]  # int32 [ceil(vocab/32)], bit 1 = allowed; see constraints/bitmask.py


class MatcherError(Exception):
    """A matcher failed. It stays failed: every later call raises the same error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """How much of a draft is legal.

    num_valid: length of the longest legal prefix of the draft.
    rows: int32 [num_valid + 1, ceil(vocab/32)]; row i is the mask before draft token i; the last row is
        the mask after the legal prefix. A view of the buffer given to ``plan``.
    """

    num_valid: int
    rows: NDArray[np.int32]


def require_rows(draft: Sequence[int], rows: NDArray[np.int32]) -> None:
    """Raise ``ValueError`` unless there is a row before each token of ``draft`` and one behind it."""
    if len(rows) <= len(draft):
        raise ValueError(
            f"a draft of {len(draft)} tokens needs {len(draft) + 1} rows of masks, not {len(rows)}"
        )


class Unguarded:
    """What a matcher without guards says of them."""

    num_vetoed = 0
    num_held = 0

    def backtrack(self, limit: int) -> int:  # noqa: ARG002 - see ``Matcher``
        """Nothing can be done."""
        return 0


class Matcher(Protocol):
    """State of one constrained sequence. Not thread-safe; different matchers may run in parallel.

    Stop ids: legal in ``fill`` exactly where the grammar may end. Accepting a stop id there terminates
    the matcher; a terminated matcher accepts nothing and its mask allows only stop ids.
    Every method but ``error`` and ``close`` raises ``MatcherError`` once the matcher has failed.
    """

    @property
    def error(self) -> str | None:
        """Why the matcher failed, or ``None``."""
        ...

    @property
    def num_vetoed(self) -> int:
        """Tokens that guards took out of the masks so far; 0 without guards. Readable at any time."""
        ...

    @property
    def num_held(self) -> int:
        """How many of the last tokens are better not delivered yet: ``backtrack`` may take them back. Readable at any time."""
        ...

    @property
    def spent_by(self) -> SpentBy | None:
        """It failed for want of what all matchers of its grammar share: used up when it needed more itself, or by others.
        One of the same grammar, compiled anew, can go on where it stood. Readable at any time."""
        ...

    def fill(self, row: Row) -> None:
        """Write the mask of legal next tokens into ``row`` (length ceil(vocab/32); tail bits zero). Does
        not change state. Raises ``MatcherError`` if a limit of the grammar engine is hit."""
        ...

    def accept(self, token_id: int) -> None:
        """Advance by one token. An illegal token fails the matcher."""
        ...

    def validate(self, token_ids: Sequence[int]) -> int:
        """Length of the longest legal prefix of ``token_ids``. Does not change state."""
        ...

    def rollback(self, num_tokens: int) -> None:
        """Undo the last ``num_tokens`` accepted tokens, termination included."""
        ...

    def backtrack(self, limit: int) -> int:
        """Where it failed because guards left nothing in the mask: undo tokens, at most ``limit``, to where there is another
        way on, and forbid the way that has failed. Returns the number of tokens undone: all is well again then; 0 if nothing
        can be done, or it failed otherwise."""
        ...

    def forced_tokens(self) -> list[int]:
        """Tokens that must come next, in canonical tokenisation; empty if nothing is forced. Does not
        change state."""
        ...

    def plan(self, draft: Sequence[int], rows: NDArray[np.int32]) -> DraftPlan:
        """Longest legal prefix of ``draft`` and its masks, in one traversal, into ``rows`` (at least
        ``len(draft) + 1`` rows). State is unchanged, also when it raises. A draft harms nobody: a token after
        which the mask cannot be computed counts as illegal here; only the first mask raises ``MatcherError``. Raises
        ``ValueError`` for too few rows."""
        ...

    @property
    def is_accepting(self) -> bool:
        """The grammar may end here."""
        ...

    @property
    def is_terminated(self) -> bool:
        """The grammar has ended: a stop id was accepted, or nothing but a stop id can follow."""
        ...

    def parallel_filler(self, threads: int) -> ParallelFiller | None:
        """What fills rows of many matchers of this kind at once with ``threads`` threads (0: one a core);
        ``None`` where the engine has nothing for that."""
        ...

    def clone(self) -> Matcher:
        """An independent matcher in the same state."""
        ...

    def close(self) -> None:
        """Free native memory. Idempotent; no other method may follow."""
        ...


class ParallelFiller(Protocol):
    """Fills rows of several matchers in native code. One caller at a time."""

    def fill(self, jobs: Sequence[tuple[Matcher, int]], rows: NDArray[np.int32]) -> None:
        """``matcher.fill(rows[i])`` for each (matcher, i) of one kind. Never raises ``MatcherError``: a matcher
        that fails holds its ``error`` and harms no other. rows: int32 [n, ceil(vocab/32)], C-contiguous."""
        ...


class CompiledGrammar(Protocol):
    """A grammar ready to match. Immutable and shared between sequences."""

    @property
    def num_bytes(self) -> int:
        """Estimate of memory held, for the cache."""
        ...

    @property
    def is_spent(self) -> bool:
        """What its matchers share is used up, so that it should be compiled anew."""
        ...

    def matcher(self) -> Matcher:
        """A fresh matcher at the start of the grammar."""
        ...


class Provider(Protocol):
    """A grammar engine bound to one vocabulary. Thread-safe."""

    @property
    def name(self) -> str: ...

    @property
    def vocabulary(self) -> Vocabulary: ...

    def compile(self, grammar: str) -> CompiledGrammar:
        """Compile a lowered grammar. Releases the GIL while it works. Raises ``InterlockError`` with code
        ``invalid_grammar`` or ``constraint_too_complex``."""
        ...
