"""What of a guess a constraint lets through, found out before anything is computed for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.constraints.providers.base import MatcherError
from interlock.constraints.state import ConstraintState


@dataclass(frozen=True, slots=True)
class LegalDraft:
    """token_ids: what may follow. is_guessed: for each, whether there was a choice; else it is forced behind the one
    before. is_complete: nothing is forced behind the last one."""

    token_ids: tuple[int, ...] = ()
    is_guessed: tuple[bool, ...] = ()
    is_complete: bool = True

    @property
    def num_guessed(self) -> int:
        return sum(self.is_guessed)


def legal_draft(state: ConstraintState | None, guess: Sequence[int], limit: int) -> LegalDraft:
    """The longest legal prefix of ``guess``, and what is forced behind it, at most ``limit`` ids. Where something is
    forced, that counts, whatever the guess says. Nothing is added to a guess of which nothing is legal. ``state`` is
    unchanged; a matcher that fails on the way ends the draft there.
    """
    if state is None:
        return LegalDraft(tuple(guess[:limit]), (True,) * min(len(guess), limit))
    token_ids: list[int] = []
    is_guessed: list[bool] = []
    is_complete = True
    left = list(reversed(guess))
    probe = state.clone()
    try:
        while left or token_ids:
            forced = probe.forced_token()
            if len(token_ids) == limit:
                is_complete = forced is None
                break
            if forced is None:
                if not left or not probe.accepts(left[-1]):
                    break
                token_id = left.pop()
            else:
                token_id = forced
                if not left or left.pop() != forced:
                    left.clear()
            probe.accept(token_id)
            token_ids.append(token_id)
            is_guessed.append(forced is None)
    except MatcherError:
        pass  # the copy failed; the sequence has not come there yet
    finally:
        probe.close()
    return LegalDraft(tuple(token_ids), tuple(is_guessed), is_complete)
