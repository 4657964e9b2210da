"""What all endpoints that generate do: read the body, start, answer as a whole or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from interlock.api.answer import ScoredAnswer
from interlock.api.context import ApiContext
from interlock.api.disconnect import while_connected
from interlock.api.errors import json_response
from interlock.api.limits import LARGE_BODY_BYTES, read_body
from interlock.api.running import RunningRequest
from interlock.api.sse import SSE, EventStream, StreamFormat
from interlock.core.events import Event, Failed, Finished
from interlock.core.request import GenerateRequest
from interlock.errors import InterlockError


class Call(Protocol):
    """A body that was read. requests: one for each answer. ignored: value of the response header."""

    @property
    def requests(self) -> tuple[GenerateRequest, ...]: ...

    @property
    def stream(self) -> bool: ...

    @property
    def ignored(self) -> str: ...


C = TypeVar("C", bound=Call)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[C]):
    """name: in metrics. read: a body, with the most nesting that it may have, to a call; runs in a thread for
    large bodies. complete: the whole answer. stream: its encoded pieces; must not raise.
    locate: what is wrong with a request, in the words of this endpoint; see ``Places``.
    """

    name: str
    read: Callable[[bytes, int], C]
    complete: Callable[[RunningRequest, C], Awaitable[dict[str, Any]]]
    stream: Callable[[RunningRequest, C], AsyncGenerator[bytes, None]]
    stream_format: StreamFormat = SSE
    locate: Callable[[C, InterlockError], InterlockError] = lambda _, error: error

    async def answer(self, request: Request, context: ApiContext) -> Response:
        async with RunningRequest(context, self.name) as running:
            call = await read_call(request, context, self.read)
            try:
                return await (self._streamed if call.stream else self._whole)(request, context, running, call)
            except InterlockError as error:
                raise self.locate(call, error) from None

    async def _whole(self, request: Request, _: ApiContext, running: RunningRequest, call: C) -> Response:
        async def work() -> dict[str, Any]:
            await running.start(*call.requests)
            return await self.complete(running, call)

        return json_response(
            await while_connected(request.receive, work()), headers=ignored_headers(call.ignored)
        )

    async def _streamed(
        self, request: Request, context: ApiContext, running: RunningRequest, call: C
    ) -> Response:
        await while_connected(request.receive, running.start_stream(*call.requests))
        return EventStream(
            self.stream(running, call),
            close=running.detach(),
            keep_alive_s=context.keep_alive_s,
            headers=ignored_headers(call.ignored),
            stream_format=self.stream_format,
        )


async def read_call(request: Request, context: ApiContext, read: Callable[[bytes, int], R]) -> R:
    """The body, read within the server's bounds."""
    body = await read_body(request, context.http)
    work = partial(read, body, context.http.max_nesting)
    return work() if len(body) < LARGE_BODY_BYTES else await asyncio.to_thread(work)


def ignored_headers(ignored: str) -> dict[str, str]:
    return {"x-interlock-ignored": ignored} if ignored else {}


async def collect(events: AsyncIterator[Event]) -> tuple[ScoredAnswer, Finished]:
    """The answer to a request with one. Raises the error of a ``Failed``."""

    async def first() -> AsyncIterator[tuple[int, Event]]:
        async for event in events:
            yield 0, event

    return (await collect_all(first(), 1))[0]


async def collect_all(events: AsyncIterator[tuple[int, Event]], n: int) -> list[tuple[ScoredAnswer, Finished]]:
    """The ``n`` answers to a request, in order. Raises the error of a ``Failed``."""
    answers = [ScoredAnswer() for _ in range(n)]
    ends: dict[int, Finished] = {}
    async for index, event in events:
        if isinstance(event, Failed):
            raise event.error
        if isinstance(event, Finished):
            ends[index] = event
        answers[index].add(event)
    return [(answer, ends[index]) for index, answer in enumerate(answers)]
