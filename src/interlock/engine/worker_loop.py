"""The worker's loop: messages in, one engine step, messages out."""

from __future__ import annotations

import math
import time
from collections import deque
from concurrent.futures import Future

from interlock import log
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.base import CompiledGrammar
from interlock.core.engine import EngineFailure, EngineOutput, EngineRequest
from interlock.engine.core import EngineCore
from interlock.engine.ipc.endpoint import WorkerEndpoint
from interlock.engine.ipc.messages import (
    Abort,
    ClientMessage,
    Outputs,
    Pause,
    Prepare,
    Prepared,
    Shutdown,
    StatsAnswer,
    StatsQuery,
    Submit,
    Unpause,
)
from interlock.engine.wakeup import Wakeup
from interlock.errors import InterlockError

_log = log.get(__name__)


class WorkerLoop:
    """Runs until ``Shutdown`` or ``shut_down``, then drains."""

    def __init__(
        self, endpoint: WorkerEndpoint, core: EngineCore, compiler: GrammarCompiler, wakeup: Wakeup
    ) -> None:
        self._endpoint = endpoint
        self._core = core
        self._compiler = compiler
        self._wakeup = wakeup
        self._prepared: deque[tuple[int, Future[CompiledGrammar]]] = deque()
        self._drain_until: float | None = None
        endpoint.also_wait_for(wakeup.fileno())

    def run(self) -> None:
        """Serve, drain, return. Raises what the core cannot recover from."""
        while not self._has_drained():
            if not self._core.has_work:
                self._core.check()
                self._endpoint.wait(self._idle_s())
                self._wakeup.clear()
            for message in self._endpoint.received():
                self._handle(message)
            self._answer_prepared()
            self._step()
        self._core.fail_all("shutting_down", "the server is stopping")
        self._step()

    def shut_down(self, drain_s: float) -> None:
        """Finish running requests for up to ``drain_s`` seconds, take no new ones, return from ``run``. Safe
        in a signal handler."""
        self._drain_until = time.monotonic() + drain_s
        self._wakeup.set()

    def _has_drained(self) -> bool:
        if self._drain_until is None:
            return False
        return self._core.is_empty or time.monotonic() >= self._drain_until

    def _idle_s(self) -> float | None:
        """Until something ends by the clock."""
        until = min(self._core.next_deadline, math.inf if self._drain_until is None else self._drain_until)
        return None if until == math.inf else max(0.0, until - time.monotonic())

    def _handle(self, message: ClientMessage) -> None:
        match message:
            case Submit(request=request):
                self._submit(request)
            case Abort(request_ids=request_ids):
                for request_id in request_ids:
                    self._core.abort(request_id)
            case Pause(request_ids=request_ids):
                self._core.pause(request_ids)
            case Unpause(request_ids=request_ids):
                self._core.unpause(request_ids)
            case Prepare(ticket=ticket, constraint=constraint):
                compiling = self._compiler.prepare(constraint)
                compiling.add_done_callback(lambda future: self._on_prepared(ticket, future))
            case StatsQuery(ticket=ticket):
                self._endpoint.send(StatsAnswer(ticket, self._core.stats()))
            case Shutdown(drain_s=drain_s):
                self.shut_down(drain_s)

    def _submit(self, request: EngineRequest) -> None:
        try:
            if self._drain_until is not None:
                raise InterlockError("shutting_down", "the server is stopping")
            self._core.submit(request)
        except InterlockError as error:
            refused = EngineOutput(
                request_id=request.request_id,
                finish_reason="error",
                failure=EngineFailure(code=error.code, message=error.message),
                num_prompt_tokens=len(request.prompt_ids),
            )
            self._endpoint.send(Outputs((refused,)))

    def _on_prepared(self, ticket: int, grammar: Future[CompiledGrammar]) -> None:
        """Runs on a thread of the compiler, or in ``_handle`` when the grammar is cached."""
        self._prepared.append((ticket, grammar))
        self._wakeup.set()

    def _answer_prepared(self) -> None:
        while self._prepared:
            ticket, grammar = self._prepared.popleft()
            error = grammar.exception()
            if error is None:
                self._endpoint.send(Prepared(ticket))
            elif isinstance(error, InterlockError):
                self._endpoint.send(Prepared(ticket, error.code, error.message))
            else:
                raise error

    def _step(self) -> None:
        try:
            outputs = self._core.step()
        except Exception as error:  # noqa: BLE001 - the edge: a bad step costs its requests, not the worker
            _log.exception("an engine step failed; its requests end")
            self._core.reset(f"the engine failed: {type(error).__name__}: {error}")
            outputs = self._core.step()
        if outputs:
            self._endpoint.send(Outputs(tuple(outputs)))
