"""``LocalEngine``: the engine in a worker process, started, watched and restarted from here."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from interlock import log
from interlock.config import EngineConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineFailure, EngineOutput, EnginePhase, EngineRequest, EngineStats
from interlock.engine.ipc.messages import (
    Abort,
    Outputs,
    PhaseChanged,
    Prepare,
    Prepared,
    Ready,
    Shutdown,
    StatsAnswer,
    StatsQuery,
    Submit,
    WorkerMessage,
)
from interlock.engine.restarts import RestartPolicy
from interlock.engine.worker_process import WORKER_MODULE, WorkerProcess
from interlock.errors import InterlockError
from interlock.metrics import Metrics

_log = log.get(__name__)

_READY_WAIT_S = 60.0
"""A request that arrives while the worker restarts waits this long."""
_EXIT_GRACE_S = 5.0
_LAST_MESSAGES_S = 1.0


@dataclass(slots=True)
class _Stream:
    """Outputs of one request on their way to its reader."""

    request: EngineRequest
    queue: asyncio.Queue[EngineOutput] = field(default_factory=asyncio.Queue)
    submitted: bool = False


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a worker ended, and whether another one may do better."""

    reason: str
    may_restart: bool


class LocalEngine:
    """Implements ``core.engine.Engine``. Request ids must be unique among unfinished requests.

    worker_module: what to run as the worker, for tests.
    """

    def __init__(
        self, config: EngineConfig, metrics: Metrics | None = None, *, worker_module: str = WORKER_MODULE
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._worker_module = worker_module
        self._phase: EnginePhase = "starting"
        self._settled = asyncio.Event()  # the phase is ready, failed or stopping
        self._reason = ""  # why the phase is failed
        self._worker: WorkerProcess | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._streams: dict[str, _Stream] = {}
        self._tickets = itertools.count()
        self._answers: dict[int, asyncio.Future[EngineStats | None]] = {}
        self._restarts = 0
        self._max_context_tokens = 0

    @property
    def phase(self) -> EnginePhase:
        return self._phase

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker, ``None`` between two."""
        return None if self._worker is None else self._worker.pid

    async def start(self) -> None:
        """Start the worker and return when it is ready. Raises ``InterlockError`` with what it said last."""
        self._supervisor = asyncio.create_task(self._supervise())
        await self._settled.wait()
        if self._phase == "failed":
            await self._supervisor
            raise InterlockError("internal_error", f"the model worker did not start: {self._reason}")

    async def prepare(self, constraint: LoweredConstraint) -> None:
        await self._until_ready(_READY_WAIT_S)
        ticket = next(self._tickets)
        await self._ask(Prepare(ticket, constraint), ticket)

    async def generate(self, request: EngineRequest) -> AsyncIterator[EngineOutput]:
        if request.request_id in self._streams:
            raise ValueError(f"request id {request.request_id!r} is in use")
        stream = self._streams[request.request_id] = _Stream(request)
        try:
            await self._submit(stream)
            while True:
                output = await stream.queue.get()
                yield output
                if output.finish_reason is not None:
                    return
        finally:
            if self._forget(stream) and stream.submitted:
                self._send(Abort((request.request_id,)))  # no await here: the reader may be cancelled

    async def abort(self, request_id: str) -> None:
        stream = self._streams.get(request_id)
        if stream is not None:
            self._end(stream, EngineOutput(request_id=request_id, finish_reason="abort"))
            self._send(Abort((request_id,)))

    async def stats(self) -> EngineStats:
        """The worker's counters; zeros, but for ``restarts``, while there is no worker that answers."""
        stats = EngineStats()
        if self._phase == "ready":
            ticket = next(self._tickets)
            try:
                stats = await self._ask(StatsQuery(ticket), ticket) or stats
            except InterlockError:
                _log.debug("the worker died before it answered")
        return replace(stats, restarts=self._restarts)

    async def stop(self, drain_s: float = 0.0) -> None:
        was_ready = self._phase == "ready"
        self._enter("stopping")
        if self._supervisor is None:
            return
        if self._worker is not None and was_ready:
            self._send(Shutdown(drain_s))
            await asyncio.wait({self._supervisor}, timeout=drain_s + _EXIT_GRACE_S)
        if not self._supervisor.done():
            self._supervisor.cancel()
        await asyncio.gather(self._supervisor, return_exceptions=True)

    # ---- requests

    async def _submit(self, stream: _Stream) -> None:
        """Send the request once the worker is ready, or queue the error that ends it."""
        request = stream.request
        try:
            await self._until_ready(min(_READY_WAIT_S, request.deadline_s or _READY_WAIT_S))
        except InterlockError as error:
            self._fail(stream, error.code, error.message)
            return
        if request.request_id in self._streams:  # else it was aborted meanwhile
            stream.submitted = True
            self._send(Submit(request))

    async def _until_ready(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            raise InterlockError("not_ready", f"the model worker is {self._phase}; try again later") from None
        if self._phase == "stopping":
            raise InterlockError("shutting_down", "the server is stopping")
        if self._phase == "failed":
            raise InterlockError("not_ready", "the model worker failed and is not restarted any more")

    async def _ask(self, message: Prepare | StatsQuery, ticket: int) -> EngineStats | None:
        answer: asyncio.Future[EngineStats | None] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        self._send(message)
        try:
            return await answer
        finally:
            self._answers.pop(ticket, None)

    def _send(self, message: Submit | Abort | Prepare | StatsQuery | Shutdown) -> None:
        if self._worker is not None:
            self._worker.send(message)

    def _forget(self, stream: _Stream) -> bool:
        """Whether the request was still unfinished."""
        if self._streams.get(stream.request.request_id) is not stream:
            return False
        del self._streams[stream.request.request_id]
        return True

    def _end(self, stream: _Stream, output: EngineOutput) -> None:
        self._forget(stream)
        stream.queue.put_nowait(output)

    def _fail(self, stream: _Stream, code: str, message: str) -> None:
        request = stream.request
        output = EngineOutput(
            request_id=request.request_id,
            finish_reason="error",
            failure=EngineFailure(code=code, message=message),
            num_prompt_tokens=len(request.prompt_ids),
        )
        self._end(stream, output)

    # ---- the worker

    async def _supervise(self) -> None:
        """Run workers, one after the other, until the engine stops or another try is not worth it."""
        policy = RestartPolicy()
        try:
            while True:
                ended = await self._run_worker()
                if self._phase == "stopping":
                    return
                delay_s = policy.delay_s(time.monotonic()) if ended.may_restart else None
                if delay_s is None:
                    _log.error("%s; it is not started again", ended.reason)
                    self._reason = ended.reason
                    self._enter("failed")
                    return
                _log.error("%s; it is started again", ended.reason)
                self._restarts += 1
                if self._metrics is not None:
                    self._metrics.worker_restarts.inc()
                await asyncio.sleep(delay_s)
        finally:
            self._fail_open_requests("shutting_down", "the server is stopping")

    async def _run_worker(self) -> _Ended:
        """One worker from its start to its end."""
        try:
            worker = self._worker = await WorkerProcess.spawn(self._config, self._worker_module)
        except OSError as error:
            return _Ended(f"the model worker cannot be started: {error}", may_restart=False)
        reading = asyncio.create_task(self._read(worker))
        exiting = asyncio.create_task(worker.wait())
        try:
            await asyncio.wait({reading, exiting}, return_when=asyncio.FIRST_COMPLETED)
            if not exiting.done():  # it said its last word, or something that is none
                await asyncio.wait({exiting}, timeout=_EXIT_GRACE_S if reading.exception() is None else 0)
            elif exiting.result() >= 0:  # not killed, so its last messages are on their way
                await asyncio.wait({reading}, timeout=_LAST_MESSAGES_S)
            return self._ended(worker, reading, exiting)
        finally:
            self._worker = None
            if self._phase not in ("stopping", "failed"):
                self._enter("restarting")
                self._fail_open_requests("worker_died", "the model worker stopped while this request ran")
            reading.cancel()
            await worker.close()
            await asyncio.gather(reading, exiting, return_exceptions=True)

    def _ended(self, worker: WorkerProcess, reading: asyncio.Task[str], exiting: asyncio.Task[int]) -> _Ended:
        """Why the worker ended."""
        error = reading.exception() if reading.done() else None
        if error is not None and not isinstance(error, TimeoutError):
            return _Ended(f"{type(error).__name__}: {error}", may_restart=False)
        if error is not None:
            reason = "the model worker did not say hello in time"
        elif exiting.done():
            reason = f"the model worker ended with status {exiting.result()}"
        else:
            reason = "the model worker did not end after its last message"
        detail = reading.result() if reading.done() and error is None else ""
        lines = [reason, *([detail] if detail else []), *([worker.last_words] if worker.last_words else [])]
        return _Ended("\n".join(lines), may_restart=self._max_context_tokens > 0)

    async def _read(self, worker: WorkerProcess) -> str:
        """Handle messages until the worker's last one; its detail."""
        await worker.hello()
        while True:
            message = await worker.receive()
            if isinstance(message, PhaseChanged) and message.phase in ("stopping", "failed"):
                return message.detail
            self._handle(message)

    def _handle(self, message: WorkerMessage) -> None:
        match message:
            case Outputs(outputs=outputs):
                for output in outputs:
                    self._deliver(output)
            case Ready(context_tokens=context_tokens):
                self._max_context_tokens = context_tokens
                self._enter("ready")
            case PhaseChanged(phase=phase):
                self._enter(phase)
            case Prepared(ticket=ticket, code=code, message=text):
                answer = self._answers.get(ticket)
                if answer is not None and not answer.done():
                    if code:
                        answer.set_exception(InterlockError(code, text))
                    else:
                        answer.set_result(None)
            case StatsAnswer(ticket=ticket, stats=stats):
                answer = self._answers.get(ticket)
                if answer is not None and not answer.done():
                    answer.set_result(stats)

    def _deliver(self, output: EngineOutput) -> None:
        stream = self._streams.get(output.request_id)
        if stream is None:
            return  # aborted here while the output was on its way
        stream.queue.put_nowait(output)
        if output.finish_reason is not None:
            self._forget(stream)

    def _enter(self, phase: EnginePhase) -> None:
        if self._phase in ("stopping", "failed") and phase != "stopping":
            return
        self._phase = phase
        if phase in ("ready", "stopping", "failed"):
            self._settled.set()
        else:
            self._settled.clear()

    def _fail_open_requests(self, code: str, message: str) -> None:
        """End what a worker was working on; what still waits for one goes on waiting."""
        for stream in [stream for stream in self._streams.values() if stream.submitted]:
            self._fail(stream, code, message)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(InterlockError(code, message))
