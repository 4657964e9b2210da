"""A real server on a real port, and the official client library against it.

``serve`` takes any ASGI application; ``scripted`` serves a scripted service.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
import uvicorn

from interlock.api.app import build_app
from interlock.api.scripted import ScriptedAdmin, ScriptedService
from interlock.config import (
    EngineConfig,
    HttpConfig,
    LlamaCppConfig,
    ServerConfig,
    SpeculativeConfig,
    VllmConfig,
)
from interlock.launch import BackgroundServer
from interlock.metrics import Metrics

KEY = "test-key"
START_S = 20


class _Server(uvicorn.Server):
    """Tells when it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serve(app: Any) -> Iterator[str]:
    """Run ``app`` in a thread on a port of the OS; gives its base URL."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = _Server(uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    try:
        assert server.ready.wait(START_S), "the server did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_S)
        listener.close()


class Scripted:
    """A running server whose answers a test sets: ``scripted.answer = lambda request: [...]``."""

    def __init__(self, service: ScriptedService, url: str) -> None:
        self.service = service
        self.url = url

    @property
    def requests(self) -> list[Any]:
        return self.service.requests

    def plays(self, script: Any) -> None:
        """Answer every request with ``script``, or raise it if it is an error."""

        def answer(_request: object) -> Any:
            if isinstance(script, Exception):
                raise script
            return script

        self.service.answer = answer


@pytest.fixture(scope="module")
def scripted() -> Iterator[Scripted]:
    service = ScriptedService()
    http = HttpConfig(admin_keys=(KEY,), api_keys=(KEY,))
    app = build_app(
        service,
        http,
        Metrics(),
        health=lambda: service.phase,
        stats=service.stats,
        admin=ScriptedAdmin(),
    )
    with serve(app) as url:
        yield Scripted(service, url)


DemoServer = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module")
def demo_server(request: pytest.FixtureRequest, demo_model: Path) -> DemoServer:
    """``with demo_server(slots=4, context_tokens=1024) as url``: the whole server on the embedded model, run by the engine
    that ``--engine`` names."""
    vllm = None
    if request.config.getoption("--engine") == "vllm":
        vllm = VllmConfig(urls=(request.getfixturevalue("vllm").url,), tokenizer=demo_model)

    @contextmanager
    def serving(
        *, slots: int, context_tokens: int, speculative: SpeculativeConfig | None = None
    ) -> Iterator[str]:
        server = BackgroundServer(
            ServerConfig(
                served_name="demo",
                engine=EngineConfig(
                    model=demo_model,
                    slots=slots,
                    context_tokens=context_tokens,
                    speculative=speculative,
                    llama_cpp=LlamaCppConfig(threads=1),
                ),
                http=HttpConfig(port=0, drain_s=1),
                vllm=vllm,
            )
        )
        yield server.start()
        server.stop()

    return serving


@pytest.fixture(scope="module")
def make_client() -> Iterator[Callable[..., openai.OpenAI]]:
    clients: list[openai.OpenAI] = []

    def make(url: str, key: str = KEY) -> openai.OpenAI:
        clients.append(openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=20))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def client(scripted: Scripted, make_client: Callable[..., openai.OpenAI]) -> openai.OpenAI:
    return make_client(scripted.url)
