"""Going on with a request after output that it has already: of a worker that died, or of a matcher that can go no further."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interlock.constraints.closing import Closing, Endings
from interlock.constraints.ending import EndingHints
from interlock.constraints.providers.base import Matcher, MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.engine import EngineRequest


def resumed_constraint(
    request: EngineRequest,
    matcher: Matcher | None,
    output_ids: Iterable[int],
    closing: Closing | None = None,
) -> ConstraintState:
    """The constraint of ``request`` after ``output_ids``. Raises ``MatcherError``, and then ``matcher`` is
    closed."""
    state = ConstraintState(matcher, thinking=request.thinking, closing=closing)
    try:
        state.replay(output_ids)
    except MatcherError:
        state.close()
        raise
    return state


def closing_of(
    request: EngineRequest, matcher: Matcher, endings: Callable[[], Endings], max_tokens: int
) -> Closing | None:
    """How an output of at most ``max_tokens`` is closed; ``None`` where the request does not want that."""
    policy, constraint = request.closing, request.constraint
    if policy is None or constraint is None:
        return None
    openers = frozenset(policy.openers)
    return Closing(
        endings(),
        constraint.key,
        matcher,
        EndingHints(closers=constraint.closers, literals=constraint.literals, never=openers),
        max_tokens=max_tokens,
        barriers=frozenset() if policy.calls else openers,
    )
