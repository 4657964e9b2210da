"""One request from its arrival to its last byte: its generation is ended, and its outcome counted, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self

from interlock import log
from interlock.api.context import ApiContext, Generation
from interlock.api.disconnect import ClientGone, cancel
from interlock.api.errors import internal_error
from interlock.core.events import Event, Failed, Finished
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError

_LOG = log.get(__name__)

# How long a stream's status line waits for the first event: a request that fails early gets a real status,
# a long prefill does not look like a dead server.
FIRST_EVENT_S = 5.0


class RunningRequest:
    """An async context manager, and the iterator of its events. Leaving it ends the request, unless
    ``detach`` moved that duty."""

    def __init__(self, context: ApiContext, endpoint: str) -> None:
        self._context = context
        self._endpoint = endpoint
        self._outcome = "disconnected"
        self._events: AsyncIterator[Event] | None = None
        self._first: asyncio.Future[Event] | None = None
        self._generation: Generation | None = None
        self._ended = False
        self._detached = False
        self._closed = False

    @property
    def generation(self) -> Generation:
        assert self._generation is not None, "not started"
        return self._generation

    async def start(self, request: GenerateRequest) -> None:
        """Raises what makes the request impossible."""
        self._generation = await self._context.service.start(request)
        self._events = aiter(self._generation)

    async def start_stream(self, request: GenerateRequest, *, first_event_s: float = FIRST_EVENT_S) -> None:
        """``start``, and wait a while for the first event. Raises its error if it is ``Failed``."""
        await self.start(request)
        self._first = asyncio.ensure_future(self._pull())
        await asyncio.wait({self._first}, timeout=first_event_s)
        if self._first.done() and isinstance(event := self._first.result(), Failed):
            raise event.error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Events, the last one ``Finished`` or ``Failed``. Anything unexpected becomes a ``Failed``."""
        if self._ended:
            raise StopAsyncIteration
        first, self._first = self._first, None
        event = await (self._pull() if first is None else first)
        if isinstance(event, Finished | Failed):
            self._ended = True
            self._outcome = event.error.code if isinstance(event, Failed) else "ok"
        return event

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
            if self._generation is not None:
                await self._generation.aclose()
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

    async def _pull(self) -> Event:
        assert self._events is not None, "not started"
        try:
            return await anext(self._events)
        except InterlockError as error:
            return Failed(error=error)
        except StopAsyncIteration:
            _LOG.error("a generation ended without a finish")
        except Exception:  # noqa: BLE001  the process edge: a stream that began must end with a reason
            _LOG.exception("a generation failed")
        return Failed(error=internal_error())
