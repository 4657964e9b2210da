"""What of a guess a constraint lets through, found out before anything is computed for it."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.constraints.providers.base import MatcherError
from interlock.constraints.state import ConstraintState


def legal_draft(state: ConstraintState | None, guess: Iterable[int], limit: int) -> tuple[list[int], int]:
    """The longest legal prefix of ``guess``, then what is forced behind it, at most ``limit`` ids; and how many of
    them are guessed. Nothing is added to a guess of which nothing is legal. ``state`` is unchanged; a matcher that
    fails on the way ends the draft there.
    """
    if state is None:
        draft = list(guess)[:limit]
        return draft, len(draft)
    draft = []
    num_guessed = 0
    probe = state.clone()
    try:
        for token_id in guess:
            if len(draft) == limit or not probe.accepts(token_id):
                break
            probe.accept(token_id)
            draft.append(token_id)
            num_guessed += 1
        while draft and len(draft) < limit and (forced := probe.forced_token()) is not None:
            probe.accept(forced)
            draft.append(forced)
    except MatcherError:
        pass  # the copy failed; the sequence has not come there yet
    finally:
        probe.close()
    return draft, num_guessed
