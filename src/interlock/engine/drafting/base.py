"""The border between the speculator and whatever guesses."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Protocol

from interlock.engine.sequence import Sequence


class DraftProposer(Protocol):
    """Guesses what follows sequences. A guess needs no grammar's consent and harms nobody when it is wrong."""

    @property
    def name(self) -> str:
        """As in the configuration."""
        ...

    def propose(self, sequences: Seq[Sequence], limit: int) -> list[list[int]]:
        """For each of the running ``sequences`` the ids that may follow its ``token_ids``, at most ``limit``, the
        likeliest guess; empty where there is none. Called between passes, changes no sequence."""
        ...

    def close(self) -> None:
        """Free everything. Idempotent."""
        ...
