"""One running answer: reads the engine, gives events, frees everything at the end."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Self, cast

from interlock import log
from interlock.core.engine import Enforcement, Engine, EngineOutput, EngineRequest
from interlock.core.events import Event, Finished
from interlock.core.timings import RequestTimings, describe
from interlock.core.tools import ToolContext
from interlock.errors import InterlockError, Problem
from interlock.metrics import Metrics
from interlock.serving.in_flight import Ticket
from interlock.serving.live import LiveRequest
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
    ``aclose``, or when the object is dropped. compile_s, cache_hit: see ``RequestTimings``. with_timings: say them
    at the end. model, constraint_kind: for ``LiveRequest``. notes: what the caller should know about how the request was
    read. unenforced: what of its schemas is left out. enforcement: who holds it to its constraint, if it has one. relaxed: has the answer validated at its end.
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
        enforcement: Enforcement | None = None,
        relaxed: RelaxedAnswer | None = None,
        model: str = "",
        constraint_kind: str = "",
        compile_s: float = 0.0,
        cache_hit: bool | None = None,
        with_timings: bool = False,
    ) -> None:
        self.request_id = request.request_id
        self.num_prompt_tokens = len(request.prompt_ids)
        self.logprobs = request.sampling.reported_logprobs
        self.tools = tools
        self.notes = notes
        self.unenforced = unenforced
        self.enforcement = enforcement
        self._relaxed = relaxed
        self._model = model
        self._constraint_kind = constraint_kind
        self.timings = RequestTimings(compile_s=compile_s, cache_hit=cache_hit)
        self._with_timings = with_timings
        self._started = time.time()
        self._first_token_at: float | None = None
        self._engine = engine
        self._request = request
        self._processor = processor
        self._ticket = ticket
        self._clock = clock
        self._metrics = metrics
        self._outputs: AsyncGenerator[EngineOutput, None] | None = None
        self._events: deque[Event] = deque()
        self._is_reading = False
        self._is_cancelled = False
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

    def live(self) -> LiveRequest | None:
        if self._is_closed:
            return None
        first, num_tokens = self._first_token_at, self._processor.usage.completion_tokens
        seconds = 0.0 if first is None else asyncio.get_running_loop().time() - first
        return LiveRequest(
            request_id=self.request_id,
            model=self._model,
            phase="waiting" if first is None else "generating",
            constraint=self._constraint_kind,
            started=self._started,
            num_prompt_tokens=self.num_prompt_tokens,
            num_tokens=num_tokens,
            tokens_per_s=(num_tokens - 1) / seconds if seconds and num_tokens > 1 else 0.0,
        )

    async def cancel(self) -> None:
        self._is_cancelled = True
        await self._engine.abort(self.request_id)

    async def _read(self) -> list[Event]:
        self._is_reading = True
        try:
            async with asyncio.timeout_at(self._clock.deadline + _GRACE_S):
                output = await self._next_output()
            if output is None:
                raise InterlockError("internal_error", "the engine ended a request without saying why")
            self._observe(output)
            return await self._completed(self._processor.push(output))
        except InterlockError as error:
            return [self._processor.fail(error)]
        except TimeoutError:
            return [self._processor.fail(timed_out())]
        except Exception:  # noqa: BLE001 - whatever breaks here must end this stream, and only this one
            _log.exception("request %s failed", self.request_id)
            return [self._processor.fail(InterlockError("internal_error", "the server failed on this answer"))]
        finally:
            self._is_reading = False

    async def _next_output(self) -> EngineOutput | None:
        if self._is_cancelled and self._outputs is None:  # before the engine knew of it
            return EngineOutput(request_id=self.request_id, finish_reason="abort")
        return await anext(self._start(), None)

    async def _completed(self, events: list[Event]) -> list[Event]:
        """The last event with what is known only now."""
        if self._relaxed is not None:
            for event in events:
                self._relaxed.add(event)
        match events:
            case [*before, Finished() as finished]:
                validity = None if self._relaxed is None else await self._relaxed.validity()
                timings = self.timings if self._with_timings else None
                return [*before, replace(finished, validity=validity, timings=timings)]
        return events

    def _start(self) -> AsyncGenerator[EngineOutput, None]:
        if self._outputs is None:
            remaining_s = self._clock.deadline - asyncio.get_running_loop().time()
            request = replace(self._request, deadline_s=max(remaining_s, 0.001))
            # An engine's outputs can be closed early: its protocol says so.
            self._outputs = cast("AsyncGenerator[EngineOutput, None]", self._engine.generate(request))
        return self._outputs

    def _observe(self, output: EngineOutput) -> None:
        if output.token_ids and self._first_token_at is None:
            self._first_token_at = asyncio.get_running_loop().time()
            self._metrics.first_token_s.observe(self._first_token_at - self._clock.arrival)
        if output.timings is not None:
            compiled = self.timings
            self.timings = replace(output.timings, compile_s=compiled.compile_s, cache_hit=compiled.cache_hit)

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
        seconds = asyncio.get_running_loop().time() - self._clock.arrival
        self._metrics.request_s.observe(seconds)
        for name, histogram in self._metrics.phases_s.items():
            histogram.observe(getattr(self.timings, f"{name}_s"))
        _log.info(
            "request %s ended after %.3f s: %d prompt tokens (%d cached), %d generated; %s",
            self.request_id,
            seconds,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            describe(self.timings),
            extra=log.fields(
                request_id=self.request_id,
                model=self._model,
                seconds=round(seconds, 3),
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                completion_tokens=usage.completion_tokens,
                constraint=self._constraint_kind,
            ),
        )


def timed_out() -> InterlockError:
    return InterlockError("request_timeout", "the request ran past its time limit")


def _release_later(loop: asyncio.AbstractEventLoop, ticket: Ticket) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(ticket.release)
