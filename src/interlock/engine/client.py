"""``LocalEngine``: the engine in a worker process, started, watched and restarted from here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace

from interlock import log
from interlock.config import EngineConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EnginePhase, EngineRequest, EngineStats, EngineTraits
from interlock.engine.ipc.messages import (
    Abort,
    ClientMessage,
    Outputs,
    Pause,
    PhaseChanged,
    Prepare,
    Prepared,
    Ready,
    Shutdown,
    StatsAnswer,
    StatsQuery,
    Submit,
    Unpause,
    WorkerMessage,
)
from interlock.engine.restarts import RestartPolicy
from interlock.engine.resumption import Resumption
from interlock.engine.streams import Stream, Streams
from interlock.engine.watchdog import Watchdog
from interlock.engine.worker_process import WORKER_MODULE, WorkerProcess
from interlock.errors import InterlockError
from interlock.metrics import Metrics
from interlock.questions import Questions

_log = log.get(__name__)

_READY_WAIT_S = 60.0
"""A request that arrives while the worker restarts waits this long."""
_EXIT_GRACE_S = 5.0
_LAST_MESSAGES_S = 1.0


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
        self._failure = ""  # why the phase is failed
        self._worker: WorkerProcess | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._streams = Streams()
        self._resumption = Resumption(config.max_worker_deaths)
        self._preparing = Questions[Prepared]()
        self._asking_stats = Questions[EngineStats]()
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

    @property
    def traits(self) -> EngineTraits:
        return EngineTraits()

    def check(self, request: EngineRequest) -> None:
        """There is nothing that it cannot do."""

    async def start(self) -> None:
        """Start the worker and return when it is ready. Raises ``InterlockError`` with what it said last."""
        if self._phase == "starting":
            self._supervisor = asyncio.create_task(self._supervise())
        await self._settled.wait()
        if self._phase == "failed":
            raise InterlockError("internal_error", f"the model worker did not start: {self._failure}")
        if self._phase == "stopping":
            raise InterlockError("shutting_down", "the engine was stopped while it started")

    async def prepare(self, constraint: LoweredConstraint) -> None:
        for _ in range(self._config.max_worker_deaths - 1):
            try:
                return await self._prepare(constraint)
            except InterlockError as error:
                if error.code != "worker_died":
                    raise
        return await self._prepare(constraint)

    async def _prepare(self, constraint: LoweredConstraint) -> None:
        await self._until_ready(_READY_WAIT_S)
        ticket, prepared = self._preparing.ask()
        self._send(Prepare(ticket, constraint))
        answer = await prepared
        if answer.code:
            raise InterlockError(answer.code, answer.message)

    async def generate(self, request: EngineRequest) -> AsyncIterator[EngineOutput]:
        stream = self._streams.open(request)
        try:
            await self._submit(stream)
            while True:
                output = await stream.queue.get()
                if stream.has_caught_up:
                    self._unpause(stream)
                yield output
                if output.finish_reason is not None:
                    return
        finally:
            if not stream.closed:
                self._streams.close(stream)
                if stream.submitted:
                    self._send(Abort((request.request_id,)))  # no await here: the reader may be cancelled
                self._resume_next()

    async def abort(self, request_id: str) -> None:
        stream = self._streams.get(request_id)
        if stream is not None:
            self._streams.end(stream, "abort")
            self._send(Abort((request_id,)))
            self._resume_next()

    async def stats(self) -> EngineStats:
        """The worker's counters; zeros, but for ``restarts``, while there is no worker that answers."""
        stats = EngineStats()
        if self._phase == "ready":
            try:
                stats = await self._worker_stats()
            except InterlockError:
                _log.debug("the worker ended before it answered")
        return replace(stats, restarts=self._restarts)

    async def stop(self, drain_s: float = 0.0) -> None:
        was_ready = self._phase == "ready"
        self._enter("stopping")
        if self._supervisor is None:
            return
        if was_ready:
            self._send(Shutdown(drain_s))
            await asyncio.wait({self._supervisor}, timeout=drain_s + _EXIT_GRACE_S)
        if not self._supervisor.done():
            self._supervisor.cancel()
        await asyncio.gather(self._supervisor, return_exceptions=True)

    async def _worker_stats(self) -> EngineStats:
        """Raises ``InterlockError`` where the worker ends before it has answered."""
        ticket, answer = self._asking_stats.ask()
        self._send(StatsQuery(ticket))
        return await answer

    # ---- requests

    async def _submit(self, stream: Stream) -> None:
        """Tell the worker once it is ready, or end the stream with the error that prevents it."""
        request = stream.request
        try:
            await self._until_ready(min(_READY_WAIT_S, request.deadline_s or _READY_WAIT_S))
        except InterlockError as error:
            self._streams.end(stream, "error", error)
            return
        if not stream.closed:  # else it was aborted meanwhile
            self._send_rest(stream)

    def _send_rest(self, stream: Stream) -> None:
        """Ask the worker for what of a stream is not delivered yet."""
        try:
            request = stream.rest_of_request()
        except InterlockError as error:
            self._streams.end(stream, "error", error)
            return
        stream.submitted = True
        self._send(Submit(request))

    def _resume_next(self) -> None:
        """Go on with what earlier workers left behind, as far as it is its turn."""
        while self._phase == "ready" and (stream := self._resumption.next()) is not None:
            self._send_rest(stream)

    def _unpause(self, stream: Stream) -> None:
        stream.paused = False
        if stream.submitted and not stream.closed:
            self._send(Unpause((stream.request.request_id,)))
        self._resume_next()

    async def _until_ready(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not self._settled.is_set():  # it may be cleared again before this task runs
                    await self._settled.wait()
        except TimeoutError:
            raise InterlockError("not_ready", f"the model worker is {self._phase}; try again later") from None
        if self._phase == "stopping":
            raise InterlockError("shutting_down", "the server is stopping")
        if self._phase == "failed":
            raise InterlockError("not_ready", "the model worker failed and is not started again")

    def _send(self, message: ClientMessage) -> None:
        if self._worker is not None:
            self._worker.send(message)

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
                    self._failure = ended.reason
                    return
                _log.error("%s; it is started again", ended.reason)
                self._restarts += 1
                if self._metrics is not None:
                    self._metrics.worker_restarts.inc()
                await asyncio.sleep(delay_s)
        finally:
            self._enter("failed")  # unless it is stopping
            if self._phase == "stopping":
                self._fail_open(InterlockError("shutting_down", "the server is stopping"))
            else:
                self._fail_open(_worker_died())

    async def _run_worker(self) -> _Ended:
        """One worker from its start to its end."""
        worker = self._worker = WorkerProcess()
        try:
            await worker.start(self._config, self._worker_module)
            return await self._watch(worker)
        except OSError as error:
            return _Ended(f"the model worker cannot be started: {error}", may_restart=False)
        finally:
            self._worker = None
            if self._phase != "stopping":
                self._enter("restarting")
                self._leave_behind()
            await worker.close()

    async def _watch(self, worker: WorkerProcess) -> _Ended:
        """Handle what the worker says until it has ended, or has to be."""
        reading = asyncio.create_task(self._read(worker))
        exiting = asyncio.create_task(worker.wait())
        guarding = asyncio.create_task(self._guard(worker))
        try:
            await asyncio.wait({reading, exiting}, return_when=asyncio.FIRST_COMPLETED)
            if not exiting.done():  # it said its last word, or something that is none
                await asyncio.wait({exiting}, timeout=_EXIT_GRACE_S if reading.exception() is None else 0)
            elif exiting.result() >= 0:  # not killed, so its last messages are on their way
                await asyncio.wait({reading}, timeout=_LAST_MESSAGES_S)
            return self._ended(worker, reading, exiting)
        finally:
            reading.cancel()
            exiting.cancel()
            guarding.cancel()
            await asyncio.gather(reading, exiting, guarding, return_exceptions=True)

    async def _guard(self, worker: WorkerProcess) -> None:
        """End the worker when it hangs; what it was working on then goes on in the next one."""
        hang_s = self._config.worker_hang_s
        if hang_s == 0:
            return
        watchdog = Watchdog(hang_s, time.monotonic())
        while not watchdog.has_hung(time.monotonic()):
            await asyncio.sleep(watchdog.interval_s)
            if self._phase != "ready":
                watchdog.not_watching(time.monotonic())
                continue
            with suppress(TimeoutError, InterlockError):
                async with asyncio.timeout(watchdog.interval_s):
                    watchdog.saw(await self._worker_stats(), time.monotonic())
        _log.error("the model worker made no progress for %g s and is ended", hang_s)
        worker.kill()

    def _ended(self, worker: WorkerProcess, reading: asyncio.Task[str], exiting: asyncio.Task[int]) -> _Ended:
        """Why the worker ended. One that never was ready would fail again."""
        error = reading.exception() if reading.done() else None
        detail = reading.result() if reading.done() and error is None else ""
        if isinstance(error, TimeoutError):
            reason = "the model worker did not say hello in time"
        elif error is not None:
            reason = f"the model worker was ended: {error}"
        elif exiting.done():
            reason = f"the model worker ended with status {exiting.result()}"
        else:
            reason = "the model worker did not end after its last message"
        lines = [line for line in (reason, detail, worker.last_words) if line]
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
                lagging = self._streams.deliver(outputs)
                if lagging:
                    self._send(Pause(tuple(stream.request.request_id for stream in lagging)))
                self._resume_next()
            case Ready(context_tokens=context_tokens):
                self._max_context_tokens = context_tokens
                self._enter("ready")
                self._resume_next()
            case PhaseChanged(phase=phase):
                self._enter(phase)
            case Prepared(ticket=ticket):
                self._preparing.answer(ticket, message)
            case StatsAnswer(ticket=ticket, stats=stats):
                self._asking_stats.answer(ticket, stats)

    def _enter(self, phase: EnginePhase) -> None:
        if self._phase in ("stopping", "failed") and phase != "stopping":
            return
        self._phase = phase
        if phase in ("ready", "stopping", "failed"):
            self._settled.set()
        else:
            self._settled.clear()

    def _leave_behind(self) -> None:
        """The worker has died: its streams wait for the next one, or end if they may be what killed it."""
        failure = _worker_died()
        for stream in self._resumption.worker_died(self._streams.submitted()):
            self._streams.end(stream, "error", failure)
        self._fail_questions(failure)

    def _fail_open(self, failure: InterlockError) -> None:
        """End everything that a worker was working on."""
        self._streams.fail_started(failure)
        self._fail_questions(failure)

    def _fail_questions(self, failure: InterlockError) -> None:
        self._preparing.fail_all(failure)
        self._asking_stats.fail_all(failure)


def _worker_died() -> InterlockError:
    return InterlockError("worker_died", "the model worker stopped while this request ran")
