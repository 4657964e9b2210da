"""An engine that plays a script, for tests of the layers above."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import suppress

from msgspec import structs

from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import (
    EngineFailure,
    EngineOutput,
    EnginePhase,
    EngineRequest,
    EngineStats,
    EngineTraits,
)
from interlock.errors import InterlockError

ScriptItem = int | EngineOutput | InterlockError
Script = Callable[[EngineRequest], Iterable[ScriptItem] | AsyncIterable[ScriptItem]]


class ScriptedEngine:
    """Plays what ``script(request)`` gives, one output for each item.

    - an id is one generated token, or the end with ``stop`` where it is one of the request's stop ids;
    - an ``EngineOutput`` is passed on with the request's id; its finish reason ends the request;
    - an ``InterlockError`` ends the request with ``error``.

    ``max_tokens`` ends it with ``length``, the end of the script with ``stop``. An async script may wait
    for whatever the test controls. ``prepare`` raises what ``refuse(constraint)`` returns, if anything.
    ``requests``, ``prepared`` and ``aborted`` record what was asked.
    """

    def __init__(
        self,
        script: Script,
        *,
        context_tokens: int = 4096,
        is_accepting: bool = True,
        refuse: Callable[[LoweredConstraint], InterlockError | None] | None = None,
    ) -> None:
        self._script = script
        self._context_tokens = context_tokens
        self._is_accepting = is_accepting
        self._refuse = refuse
        self._phase: EnginePhase = "starting"
        self._running: dict[str, asyncio.Event] = {}
        self._num_generated = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.requests: list[EngineRequest] = []
        self.prepared: list[LoweredConstraint] = []
        self.aborted: list[str] = []

    @property
    def phase(self) -> EnginePhase:
        return self._phase

    @property
    def max_context_tokens(self) -> int:
        return self._context_tokens

    @property
    def traits(self) -> EngineTraits:
        return EngineTraits()

    def check(self, request: EngineRequest) -> None:
        """There is nothing that it cannot do."""

    async def start(self) -> None:
        self._phase = "ready"

    async def prepare(self, constraint: LoweredConstraint) -> None:
        self.prepared.append(constraint)
        error = None if self._refuse is None else self._refuse(constraint)
        if error is not None:
            raise error

    async def generate(self, request: EngineRequest) -> AsyncIterator[EngineOutput]:
        if self._phase != "ready":
            code = "shutting_down" if self._phase == "stopping" else "not_ready"
            yield self._error(request, InterlockError(code, f"the engine is {self._phase}"))
            return
        self.requests.append(request)
        ended = self._running[request.request_id] = asyncio.Event()
        self._idle.clear()
        finished = False
        try:
            async for output in self._play(request, ended):
                finished = output.finish_reason is not None
                yield output
                if finished:
                    return
        finally:
            if not finished:
                self.aborted.append(request.request_id)
            del self._running[request.request_id]
            if not self._running:
                self._idle.set()

    async def abort(self, request_id: str) -> None:
        if request_id in self._running:
            self._running[request_id].set()

    async def stats(self) -> EngineStats:
        await asyncio.sleep(0)
        return EngineStats(num_running=len(self._running), num_generated_tokens=self._num_generated)

    async def stop(self, drain_s: float = 0.0) -> None:
        self._phase = "stopping"
        if drain_s > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), drain_s)
        for ended in self._running.values():
            ended.set()

    async def _play(self, request: EngineRequest, ended: asyncio.Event) -> AsyncIterator[EngineOutput]:
        items = aiter(_items(self._script(request)))
        num_tokens = 0
        while num_tokens < request.max_tokens:
            item = await _next(items, ended)
            if item is None or (isinstance(item, int) and item in request.stop_ids):
                yield self._stopped(request, ended)
                return
            output = self._output(request, item)
            num_tokens += len(output.token_ids)
            self._num_generated += len(output.token_ids)
            if num_tokens >= request.max_tokens and output.finish_reason is None:
                output = structs.replace(output, finish_reason="length", is_accepting=self._accepting(request))
            yield output

    def _stopped(self, request: EngineRequest, ended: asyncio.Event) -> EngineOutput:
        if ended.is_set() and self._phase == "stopping":
            return self._error(request, InterlockError("shutting_down", "the server is stopping"))
        if ended.is_set():
            return self._base(request, finish_reason="abort")
        return self._base(request, finish_reason="stop", is_accepting=self._accepting(request))

    def _output(self, request: EngineRequest, item: ScriptItem) -> EngineOutput:
        if isinstance(item, InterlockError):
            return self._error(request, item)
        if isinstance(item, EngineOutput):
            return structs.replace(item, request_id=request.request_id)
        accepting = self._accepting(request) if request.report_accepting else None
        return self._base(request, token_ids=(item,), is_accepting=accepting)

    def _accepting(self, request: EngineRequest) -> bool | None:
        return None if request.constraint is None else self._is_accepting

    def _error(self, request: EngineRequest, error: InterlockError) -> EngineOutput:
        return self._base(
            request, finish_reason="error", failure=EngineFailure(code=error.code, message=error.message)
        )

    @staticmethod
    def _base(request: EngineRequest, **fields: object) -> EngineOutput:
        base = EngineOutput(request_id=request.request_id, num_prompt_tokens=len(request.prompt_ids))
        return structs.replace(base, **fields)


async def _items(items: Iterable[ScriptItem] | AsyncIterable[ScriptItem]) -> AsyncIterator[ScriptItem]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        await asyncio.sleep(0)  # as with a real engine, the other tasks run between two outputs
        yield item


async def _next(items: AsyncIterator[ScriptItem], ended: asyncio.Event) -> ScriptItem | None:
    """The next item; ``None`` at the end of the script or of the request."""
    if ended.is_set():
        return None
    step = asyncio.ensure_future(anext(items, None))
    end = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({step, end}, return_when=asyncio.FIRST_COMPLETED)
        return None if ended.is_set() else step.result()
    finally:
        for task in (step, end):
            task.cancel()
        await asyncio.gather(step, end, return_exceptions=True)
