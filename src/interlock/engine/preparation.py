"""Constraints of sequences, made beside the step: compiled, and brought to where the output stands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from interlock import log
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.base import CompiledGrammar, MatcherError
from interlock.constraints.state import ConstraintState
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineFailure
from interlock.engine.resume import closable_constraint
from interlock.engine.sequence import Sequence, SequenceStatus
from interlock.errors import InterlockError

_log = log.get(__name__)


class Preparation:
    """True while there is something to be had. wake: called, from any thread, when there is."""

    def __init__(self, compiler: GrammarCompiler, wake: Callable[[], None]) -> None:
        self._compiler = compiler
        self._wake = wake
        self._compiled: deque[tuple[Sequence, Future[CompiledGrammar]]] = deque()
        self._made: deque[tuple[Sequence, Future[ConstraintState]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._compiled or self._made)

    def begin(self, sequence: Sequence, constraint: LoweredConstraint) -> None:
        """Have the constraint of ``sequence`` made; ``ready`` gives it."""

        def on_compiled(
            compiling: Future[CompiledGrammar],
        ) -> None:  # a thread of the compiler, or now if it is cached
            self._compiled.append((sequence, compiling))
            self._wake()

        self._compiler.prepare(constraint).add_done_callback(on_compiled)

    def ready(self) -> Iterator[tuple[Sequence, ConstraintState | EngineFailure]]:
        """Sequences that have not ended meanwhile, with what has come: the constraint, or why there is none."""
        while self._compiled:
            sequence, compiling = self._compiled.popleft()
            if sequence.status is not SequenceStatus.FINISHED:
                self._make(sequence, compiling)
        while self._made:
            sequence, making = self._made.popleft()
            made = _outcome(making)
            if sequence.status is not SequenceStatus.FINISHED:
                yield sequence, made
            elif isinstance(made, ConstraintState):
                made.close()

    def _make(self, sequence: Sequence, compiling: Future[CompiledGrammar]) -> None:
        def on_made(making: Future[ConstraintState]) -> None:
            self._made.append((sequence, making))
            self._wake()

        making: Future[ConstraintState]
        try:
            making = closable_constraint(sequence, compiling.result(), self._compiler)
        except Exception as error:  # noqa: BLE001 - the edge of a request: its matcher harms no other
            making = Future()
            making.set_exception(error)
        making.add_done_callback(on_made)


def _outcome(making: Future[ConstraintState]) -> ConstraintState | EngineFailure:
    try:
        return making.result()
    except InterlockError as error:
        return EngineFailure(code=error.code, message=error.message)
    except MatcherError as error:
        return EngineFailure(code="matcher_failed", message=str(error))
    except Exception as error:  # noqa: BLE001 - the edge of a request: its matcher harms no other
        _log.exception("a matcher could not be made; its request ends")
        return EngineFailure(code="matcher_failed", message=f"{type(error).__name__}: {error}")
