"""Going on with a request after output that it has already: of a worker that died, or of a matcher that can go no further."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.constraints.providers.base import Matcher, MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.engine import EngineRequest


def resumed_constraint(
    request: EngineRequest, matcher: Matcher | None, output_ids: Iterable[int]
) -> ConstraintState:
    """The constraint of ``request`` after ``output_ids``. Raises ``MatcherError``, and then ``matcher`` is
    closed."""
    state = ConstraintState(matcher, thinking=request.thinking)
    try:
        for token_id in output_ids:
            state.accept(token_id)
    except MatcherError:
        state.close()
        raise
    return state
