"""Going on with a request after output that it has already: of a worker that died, or of a matcher that can go no further."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.constraints.closing import Closing
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.ending import EndingHints
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.engine import EngineRequest
from interlock.engine.sequence import Sequence


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


def closable_constraint(
    sequence: Sequence, grammar: CompiledGrammar, compiler: GrammarCompiler
) -> ConstraintState:
    """The constraint of ``sequence`` after its output so far, closed on length where its request wants that. Raises
    ``MatcherError``."""
    request, matcher = sequence.request, grammar.matcher()
    closing = _closing(request, matcher, compiler, sequence.max_output_tokens)
    return resumed_constraint(request, matcher, sequence.output_ids, closing)


def _closing(
    request: EngineRequest, matcher: Matcher, compiler: GrammarCompiler, max_tokens: int
) -> Closing | None:
    policy, constraint = request.closing, request.constraint
    if policy is None or constraint is None:
        return None
    openers = frozenset(policy.openers)
    return Closing(
        compiler.endings,
        constraint.key,
        matcher,
        EndingHints(closers=constraint.closers, literals=constraint.literals, never=openers),
        max_tokens=max_tokens,
        barriers=frozenset() if policy.calls else openers,
    )
