"""One running answer: reads the engine, gives events, frees everything at the end."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Self, cast

from interlock import log
from interlock.core.engine import Engine, EngineOutput, EngineRequest
from interlock.core.events import Event, Finished
from interlock.core.tools import ToolContext
from interlock.errors import InterlockError, Problem
from interlock.metrics import Metrics
from interlock.serving.in_flight import Ticket
from interlock.serving.output import OutputProcessor
from interlock.serving.validity import RelaxedAnswer

_log = log.get(__name__)

# The engine ends a request at its deadline; this much later the engine itself is taken for stuck.
_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Times on the event loop's clock, seconds."""

    arrival: float
    deadline: float


class Generation:
    """Events of one request, ending with exactly one ``Finished`` or ``Failed``.

    The engine starts at the first read. Everything is freed when the last event has been made, at
    ``aclose``, or when the object is dropped. notes: what the caller should know about how the request was
    read. unenforced: what of its schemas is left out. relaxed: has the answer validated at its end.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        request: EngineRequest,
        processor: OutputProcessor,
        ticket: Ticket,
        clock: Clock,
        metrics: Metrics,
        tools: ToolContext,
        notes: tuple[str, ...] = (),
        unenforced: tuple[Problem, ...] = (),
        relaxed: RelaxedAnswer | None = None,
    ) -> None:
        self.request_id = request.request_id
        self.num_prompt_tokens = len(request.prompt_ids)
        self.tools = tools
        self.notes = notes
        self.unenforced = unenforced
        self._relaxed = relaxed
        self._engine = engine
        self._request = request
        self._processor = processor
        self._ticket = ticket
        self._clock = clock
        self._metrics = metrics
        self._outputs: AsyncGenerator[EngineOutput, None] | None = None
        self._events: deque[Event] = deque()
        self._is_reading = False
        self._is_closed = False
        # The collector may run in any thread, tickets belong to the loop.
        self._finalizer = weakref.finalize(self, _release_later, asyncio.get_running_loop(), ticket)
        self._finalizer.atexit = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._is_closed:
                raise StopAsyncIteration
            self._events.extend(await self._read())
            if self._processor.finished:
                await self._close()
        return self._events.popleft()

    async def aclose(self) -> None:
        """End the request and free what it holds; any number of times. Where another task is reading, it
        gets the end of the stream."""
        if self._is_reading:
            await self._engine.abort(self.request_id)
        else:
            self._events.clear()
            await self._close()

    async def _read(self) -> list[Event]:
        self._is_reading = True
        try:
            async with asyncio.timeout_at(self._clock.deadline + _GRACE_S):
                output = await anext(self._start(), None)
            if output is None:
                raise InterlockError("internal_error", "the engine ended a request without saying why")
            self._observe_first(output)
            return await self._validated(self._processor.push(output))
        except InterlockError as error:
            return [self._processor.fail(error)]
        except TimeoutError:
            return [self._processor.fail(timed_out())]
        except Exception:  # noqa: BLE001 - whatever breaks here must end this stream, and only this one
            _log.exception("request %s failed", self.request_id)
            return [self._processor.fail(InterlockError("internal_error", "the server failed on this answer"))]
        finally:
            self._is_reading = False

    async def _validated(self, events: list[Event]) -> list[Event]:
        if self._relaxed is None:
            return events
        for event in events:
            self._relaxed.add(event)
        match events:
            case [*before, Finished() as finished]:
                return [*before, replace(finished, validity=await self._relaxed.validity())]
        return events

    def _start(self) -> AsyncGenerator[EngineOutput, None]:
        if self._outputs is None:
            remaining_s = self._clock.deadline - asyncio.get_running_loop().time()
            request = replace(self._request, deadline_s=max(remaining_s, 0.001))
            # An engine's outputs can be closed early: its protocol says so.
            self._outputs = cast("AsyncGenerator[EngineOutput, None]", self._engine.generate(request))
        return self._outputs

    def _observe_first(self, output: EngineOutput) -> None:
        if output.token_ids and not self._processor.usage.completion_tokens:
            now = asyncio.get_running_loop().time()
            self._metrics.first_token_s.observe(now - self._clock.arrival)

    async def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._outputs is not None:
                await self._outputs.aclose()
        finally:
            self._finalizer.detach()
            self._ticket.release()
            self._observe_end()

    def _observe_end(self) -> None:
        usage = self._processor.usage
        self._metrics.prompt_tokens.inc(usage.prompt_tokens)
        self._metrics.completion_tokens.inc(usage.completion_tokens)
        self._metrics.request_s.observe(asyncio.get_running_loop().time() - self._clock.arrival)


def timed_out() -> InterlockError:
    return InterlockError("request_timeout", "the request ran past its time limit")


def _release_later(loop: asyncio.AbstractEventLoop, ticket: Ticket) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(ticket.release)
