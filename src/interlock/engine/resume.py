"""Going on with a request whose worker died, after the output that was delivered."""

from __future__ import annotations

from interlock.constraints.providers.base import Matcher, MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.engine import EngineRequest


def resumed_constraint(request: EngineRequest, matcher: Matcher | None) -> ConstraintState:
    """The constraint of ``request`` after its ``resume_ids``. Raises ``MatcherError``, and then ``matcher`` is
    closed."""
    state = ConstraintState(matcher, thinking=request.thinking)
    try:
        for token_id in request.resume_ids:
            state.accept(token_id)
    except MatcherError:
        state.close()
        raise
    return state
