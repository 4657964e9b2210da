"""Finding the one sequence that makes forward passes fail, so that the others live on."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from interlock.engine.sequence import Sequence, SequenceStatus


class Quarantine:
    """Sequences of a failed pass, in groups that are tried one after the other.

    A failed group is split in halves; a sequence that failed alone is the culprit. A sequence is cleared
    once everything it held when the pass failed has been computed again.
    """

    def __init__(self) -> None:
        self._groups: list[list[Sequence]] = []  # a stack; the last one is being tried

    def split(self, failed: Seq[Sequence]) -> None:
        """Try the halves of ``failed``, at least two sequences whose cache has been cleared."""
        middle = len(failed) // 2
        self._groups += [list(failed[middle:]), list(failed[:middle])]

    def suspects(self) -> list[Sequence] | None:
        """The only sequences the next step may run; ``None`` when nobody is under suspicion."""
        while self._groups:
            group = [sequence for sequence in self._groups[-1] if _is_suspect(sequence)]
            if group:
                return group
            self._groups.pop()
        return None


def _is_suspect(sequence: Sequence) -> bool:
    computed_again = sequence.num_computed_tokens > 0 and sequence.is_decoding
    return sequence.status is SequenceStatus.RUNNING and not computed_again
