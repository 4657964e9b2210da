"""A client that goes away, at every moment; the application is driven by hand as a server would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interlock.api.scripted import ScriptedService, finish, text
from interlock.core.events import TextDelta

TIMEOUT_S = 5


class Connection:
    """One request whose client can leave. ``sent``: body bytes so far; ``started``: the status was sent."""

    def __init__(self, app: Any, path: str = "/v1/chat/completions", **fields: Any) -> None:
        body = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}], **fields}
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._messages.put_nowait(
            {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
        )
        self._left = asyncio.Event()
        self.sent = b""
        self.broken = False
        self.news = asyncio.Condition()
        self.task = asyncio.ensure_future(app(self._scope(path), self._receive, self._send))

    def leave(self) -> None:
        self._left.set()

    async def wait_for(self, content: bytes) -> None:
        async with asyncio.timeout(TIMEOUT_S), self.news:
            await self.news.wait_for(lambda: content in self.sent)

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S), self.news:
            await self.news.wait_for(holds)

    async def ended(self) -> None:
        await asyncio.wait_for(self.task, TIMEOUT_S)

    async def _receive(self) -> dict[str, Any]:
        if not self._messages.empty():
            return self._messages.get_nowait()
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if self.broken:
            raise OSError("broken pipe")
        async with self.news:
            self.sent += message.get("body", b"")
            self.news.notify_all()

    @staticmethod
    def _scope(path: str) -> dict[str, Any]:
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"content-type", b"application/json")],
            "client": ("test", 1),
            "server": ("test", 80),
        }


@contextmanager
def outcome(api: Any, name: str) -> Iterator[None]:
    counter = api.metrics.requests.labels("chat_completions", name)
    before = counter._value.get()
    yield
    assert counter._value.get() == before + 1


@pytest.fixture
def never() -> asyncio.Event:
    return asyncio.Event()


@pytest.mark.parametrize("stream", [False, True])
async def test_during_start(make_api, never: asyncio.Event, stream: bool) -> None:
    service = ScriptedService()
    service.gate = never
    api = make_api(service)
    connection = Connection(api.app, stream=stream)
    with outcome(api, "disconnected"):
        await service.arrived.wait()
        connection.leave()
        await connection.ended()
    assert service.generations == []


@pytest.mark.parametrize("stream", [False, True])
async def test_before_the_first_byte(make_api, never: asyncio.Event, stream: bool) -> None:
    service = ScriptedService(lambda _: [never, *finish("stop")])
    api = make_api(service)
    connection = Connection(api.app, stream=stream)
    with outcome(api, "disconnected"):
        await service.started.wait()
        connection.leave()
        await connection.ended()
    assert service.generations[0].num_closes == 1


async def test_in_the_middle_of_a_stream(make_api, never: asyncio.Event) -> None:
    service = ScriptedService(lambda _: [TextDelta(text="first"), never, *text("second")])
    api = make_api(service)
    connection = Connection(api.app, stream=True)
    with outcome(api, "disconnected"):
        await connection.wait_for(b"first")
        connection.leave()
        await connection.ended()
    assert service.generations[0].num_closes == 1
    assert b"second" not in connection.sent


async def test_in_the_middle_of_a_whole_answer(make_api, never: asyncio.Event) -> None:
    service = ScriptedService(lambda _: [TextDelta(text="first"), never, *text("second")])
    api = make_api(service)
    connection = Connection(api.app)
    await service.started.wait()
    connection.leave()
    await connection.ended()
    assert service.generations[0].num_closes == 1


async def test_noticed_first_when_writing(make_api, caplog: pytest.LogCaptureFixture) -> None:
    gate = asyncio.Event()
    service = ScriptedService(lambda _: [TextDelta(text="first"), gate, *text("second")])
    api = make_api(service)
    connection = Connection(api.app, stream=True)
    with outcome(api, "disconnected"):
        await connection.wait_for(b"first")
        connection.broken = True
        gate.set()
        await connection.ended()
    assert service.generations[0].num_closes == 1
    assert not caplog.records


async def test_a_neighbour_goes_on(make_api, never: asyncio.Event) -> None:
    gate = asyncio.Event()
    scripts = iter([[TextDelta(text="a"), never], [TextDelta(text="b"), gate, *text("c")]])
    service = ScriptedService(lambda _: next(scripts))
    api = make_api(service)
    leaver = Connection(api.app, stream=True)
    await leaver.wait_for(b'"a"')
    stayer = Connection(api.app, stream=True)
    await stayer.wait_for(b'"b"')
    leaver.leave()
    await leaver.ended()
    gate.set()
    await stayer.ended()
    assert stayer.sent.endswith(b"data: [DONE]\n\n")


async def test_a_cancelled_request_is_closed(make_api, never: asyncio.Event) -> None:
    service = ScriptedService(lambda _: [TextDelta(text="a"), never])
    api = make_api(service)
    connection = Connection(api.app, stream=True)
    await connection.wait_for(b'"a"')
    connection.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connection.ended()
    assert service.generations[0].num_closes == 1


async def test_silence_is_filled_with_comments(make_api) -> None:
    gate = asyncio.Event()
    service = ScriptedService(lambda _: [TextDelta(text="a"), gate, *text("b")])
    api = make_api(service, keep_alive_s=0.01)
    connection = Connection(api.app, stream=True)
    await connection.wait_for(b": keep-alive\n\n: keep-alive\n\n")
    gate.set()
    await connection.ended()
    assert connection.sent.endswith(b"data: [DONE]\n\n")
    assert (
        connection.sent.index(b'"a"') < connection.sent.index(b": keep-alive") < connection.sent.index(b'"b"')
    )


# Streams of every kind

STREAMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"n": 3},
    "/v1/completions": {"prompt": ["a", "b"], "messages": None},
    "/v1/responses": {"input": "Hi", "messages": None},
    "/v1/messages": {"max_tokens": 5},
    "/api/chat": {},
    "/api/generate": {"prompt": "Hi"},
}


@pytest.mark.parametrize("path", STREAMS)
async def test_every_answer_of_a_client_that_left_is_closed(make_api, never: asyncio.Event, path: str) -> None:
    service = ScriptedService(lambda _: [TextDelta(text="abc"), never])
    connection = Connection(make_api(service).app, path, stream=True, **STREAMS[path])
    await connection.wait_for(b"abc")
    connection.leave()
    await connection.ended()
    assert service.generations
    assert all(generation.num_closes == 1 for generation in service.generations)


@pytest.mark.parametrize("path", STREAMS)
async def test_silence_is_filled_as_the_format_has_it(make_api, path: str) -> None:
    gate = asyncio.Event()
    service = ScriptedService(lambda _: [TextDelta(text="abc"), gate, *text("xyz")])
    connection = Connection(make_api(service, keep_alive_s=0.01).app, path, stream=True, **STREAMS[path])
    await connection.wait_for(b"abc")
    filler = {"/v1/messages": b"event: ping\n", "/api/chat": b"", "/api/generate": b""}.get(
        path, b": keep-alive\n"
    )
    after = connection.sent.count(filler)
    if filler:
        await connection.wait_until(lambda: connection.sent.count(filler) > after + 2)
    gate.set()
    await connection.ended()
    assert b"xyz" in connection.sent
    assert filler or b"keep-alive" not in connection.sent
