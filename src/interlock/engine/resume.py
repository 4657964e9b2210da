"""Going on with a request after output that it has already: of a worker that died, or of a matcher that can go no further."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from interlock.constraints.closing import Closing
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest, LengthClosing
from interlock.engine.sequence import Sequence


def resumed_constraint(
    request: EngineRequest,
    matcher: Matcher | None,
    output_ids: Iterable[int],
    closing: Closing | None = None,
) -> ConstraintState:
    """The constraint of ``request`` after ``output_ids``. Raises ``MatcherError``, and then ``matcher`` is
    closed; one whose grammar others have used up meanwhile has failed, and says so."""
    state = ConstraintState(matcher, thinking=request.thinking, closing=closing)
    try:
        state.replay(output_ids)
    except MatcherError:
        if state.spent_by != "others":
            state.close()
            raise
    return state


def closable_constraint(
    sequence: Sequence, grammar: CompiledGrammar, compiler: GrammarCompiler
) -> Future[ConstraintState]:
    """The constraint of ``sequence`` after its output so far, closed on length where its request wants that. It is there at
    once, or comes from beside the step where an ending is searched or output replayed. Raises ``MatcherError``, and the
    future may."""
    request, matcher, output_ids = sequence.request, grammar.matcher(), sequence.output_ids
    max_tokens = sequence.max_output_tokens

    def make() -> ConstraintState:
        closing = _closing(request, matcher, compiler, max_tokens)
        return resumed_constraint(request, matcher, output_ids, closing)

    if output_ids or not _is_closing_known(request, compiler, max_tokens):
        return compiler.endings.beside(make)
    made: Future[ConstraintState] = Future()
    made.set_result(make())
    return made


def _is_closing_known(request: EngineRequest, compiler: GrammarCompiler, max_tokens: int) -> bool:
    if request.closing is None or request.constraint is None:
        return True
    hints = _hints(request.constraint, request.closing)
    return compiler.endings.is_known(request.constraint.key, hints, max_tokens)


def _closing(
    request: EngineRequest, matcher: Matcher, compiler: GrammarCompiler, max_tokens: int
) -> Closing | None:
    policy, constraint = request.closing, request.constraint
    if policy is None or constraint is None:
        return None
    return Closing(
        compiler.endings,
        constraint.key,
        matcher,
        _hints(constraint, policy),
        max_tokens=max_tokens,
        barriers=frozenset() if policy.calls else frozenset(policy.openers),
    )


def _hints(constraint: LoweredConstraint, policy: LengthClosing) -> EndingHints:
    never = frozenset(policy.openers)
    return EndingHints(constraint.closers, constraint.literals, constraint.required, never)
