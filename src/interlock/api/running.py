"""One request from its arrival to its last byte: its generation is ended, and its outcome counted, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Self

from interlock import log
from interlock.api.context import ApiContext, Generation
from interlock.api.disconnect import ClientGone, cancel
from interlock.api.errors import internal_error
from interlock.core.events import Event, Failed, Finished
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError
from interlock.serving.fan_out import FanIn

_LOG = log.get(__name__)

# How long a stream's status line waits for the first event: a request that fails early gets a real status,
# a long prefill does not look like a dead server.
FIRST_EVENT_S = 5.0


class RunningRequest:
    """An async context manager, and the iterator of its events (of its only answer; ``indexed`` is for more).
    Leaving it ends the request, unless ``detach`` moved that duty. With several answers the first that fails
    ends them all."""

    def __init__(self, context: ApiContext, endpoint: str) -> None:
        self._context = context
        self._endpoint = endpoint
        self._outcome = "disconnected"
        self._events: FanIn[Event] | None = None
        self._first: asyncio.Future[tuple[int, Event]] | None = None
        self._generations: list[Generation] = []
        self._ended = False
        self._detached = False
        self._closed = False

    @property
    def generation(self) -> Generation:
        """The first answer's; how the request was read is the same for all."""
        assert self._generations, "not started"
        return self._generations[0]

    async def start(self, *requests: GenerateRequest) -> None:
        """Start one answer for each of ``requests``. Raises what makes one impossible."""
        for request in requests:
            self._generations.append(await self._context.service.start(request))
        sources = [partial(_pull, aiter(generation)) for generation in self._generations]
        self._events = FanIn(sources, lambda event: isinstance(event, Finished | Failed))

    async def start_stream(self, *requests: GenerateRequest, first_event_s: float = FIRST_EVENT_S) -> None:
        """``start``, and wait a while for the first event. Raises its error if it is ``Failed``."""
        await self.start(*requests)
        assert self._events is not None
        self._first = asyncio.ensure_future(self._events.next())
        await asyncio.wait({self._first}, timeout=first_event_s)
        if self._first.done() and isinstance(event := self._first.result()[1], Failed):
            raise event.error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Events, the last one ``Finished`` or ``Failed``. Anything unexpected becomes a ``Failed``."""
        return (await self._next())[1]

    async def indexed(self) -> AsyncIterator[tuple[int, Event]]:
        """Events with the index of their answer: a ``Finished`` for each answer, or a ``Failed`` at the end."""
        while not self._ended:
            yield await self._next()

    async def _next(self) -> tuple[int, Event]:
        assert self._events is not None, "not started"
        if self._ended:
            raise StopAsyncIteration
        first, self._first = self._first, None
        index, event = await (self._events.next() if first is None else first)
        self._ended = isinstance(event, Failed) or not self._events.is_open
        if self._ended:
            self._outcome = event.error.code if isinstance(event, Failed) else "ok"
        return index, event

    def detach(self) -> Callable[[], Awaitable[None]]:
        """The caller takes over and must await the result once; leaving the context then does nothing."""
        self._detached = True
        return self.aclose

    async def aclose(self) -> None:
        """End the request and count its outcome; later calls do nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._first is not None:
                await cancel(self._first)
            if self._events is not None:
                await self._events.aclose()
            for generation in self._generations:
                await generation.aclose()
        finally:
            self._context.metrics.requests.labels(self._endpoint, self._outcome).inc()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InterlockError):
            self._outcome = error.code
        elif isinstance(error, Exception) and not isinstance(error, ClientGone):
            self._outcome = "internal_error"
        if error is not None or not self._detached:
            await self.aclose()


async def _pull(events: AsyncIterator[Event]) -> Event:
    try:
        return await anext(events)
    except InterlockError as error:
        return Failed(error=error)
    except StopAsyncIteration:
        _LOG.error("a generation ended without a finish")
    except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
        _LOG.exception("a generation failed")
    return Failed(error=internal_error())
