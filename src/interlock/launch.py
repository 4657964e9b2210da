"""Composition root of the API process: configuration in, a running server out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from interlock import log
from interlock.api.app import build_app
from interlock.api.auth import is_loopback
from interlock.api.connection import bounded_connection
from interlock.compiling.pool import CompilePool
from interlock.config import HttpConfig, ServerConfig
from interlock.core.engine import Engine
from interlock.engine.client import LocalEngine
from interlock.errors import InterlockError
from interlock.families import registry
from interlock.families.base import ModelFamily
from interlock.families.wire.render import PromptRenderer
from interlock.metrics import Metrics
from interlock.remote.vllm import VllmEngine
from interlock.serving.configured import ConfiguredModel
from interlock.serving.model import ServedModel
from interlock.serving.registry import ModelRegistry
from interlock.serving.reloadable import ReloadableEngine
from interlock.serving.service import GenerationService
from interlock.settings.store import SettingsStore
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.load import describe

_log = log.get(__name__)

# After the drain time: the engine's stop, and the last events on their way to slow clients.
_LAST_BYTES_S = 10.0


def compose(config: ServerConfig) -> tuple[FastAPI, ModelRegistry]:
    """The application and what starts and stops under it; nothing is running yet."""
    metrics, store = Metrics(), SettingsStore(config.settings)
    names = [(config.served_name, config.engine.model), *config.more_models]
    llama_cpp = replace(config.engine.llama_cpp, sharers=len(names))
    torch = replace(config.engine.torch, sharers=len(names))
    engine = replace(
        config.engine,
        llama_cpp=llama_cpp,
        torch=torch,
        prompt_cache_bytes=config.engine.prompt_cache_bytes // len(names),
    )
    config = replace(config, engine=engine)
    models = ModelRegistry([_model(name, path, config, metrics, store) for name, path in names])
    app = build_app(
        models,
        config.http,
        metrics,
        health=lambda: models.phase,
        stats=models.stats,
        reasoning_field=config.defaults.reasoning_field,
        admin=models if serves_admin(config.http) else None,
    )
    return app, models


def serves_admin(http: HttpConfig) -> bool:
    """With an admin key; without one only where everything is open, and to this machine alone."""
    return bool(http.admin_keys) or (is_loopback(http.host) and not http.api_keys)


def _model(
    name: str, path: Path, config: ServerConfig, metrics: Metrics, store: SettingsStore
) -> ConfiguredModel:
    description = describe(path)
    family = _choose_family(config.family, description)
    renderer = PromptRenderer(family, description)
    model = ServedModel(
        name=name,
        family=family,
        tokenizer=description.tokenizer,
        renderer=renderer,
        engine=ReloadableEngine(lambda: _engine(path, config, description, metrics)),
        compile_pool=CompilePool(
            replace(config.compile, guards=config.vllm is None), description.tokenizer.special_tokens, metrics
        ),
        defaults=config.defaults,
    )
    service = GenerationService(model, metrics, config.http, config.load)
    return ConfiguredModel(service, model, description, store)


def _engine(path: Path, config: ServerConfig, description: ModelDescription, metrics: Metrics) -> Engine:
    if config.vllm is not None:
        return VllmEngine(replace(config.vllm, tokenizer=path), description.tokenizer, metrics)
    return LocalEngine(replace(config.engine, model=path), metrics)


def _choose_family(name: str | None, description: ModelDescription) -> ModelFamily:
    if name is not None:
        return registry.by_name(name)
    choice = registry.choose(description)
    _log.info("model family %s: %s", choice.family.name, choice.reason)
    return choice.family


class Server:
    """One HTTP server. The port is bound at construction, so that two servers never race for it.

    on_ready: called with the URL when requests are served.
    """

    def __init__(self, config: ServerConfig, on_ready: Callable[[str], None] = lambda _url: None) -> None:
        self._on_ready = on_ready
        self.error: InterlockError | None = None
        self._app, self._models = compose(config)
        self._app.router.lifespan_context = self._lifespan
        self._starting: asyncio.Task[None] | None = None
        _check_certificate(config.http)
        self._socket = _bind(config.http)
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if config.http.ssl_certfile is None else "https"
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        self._uvicorn = _HttpServer(
            uvicorn.Config(
                self._app,
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                http=bounded_connection(
                    head_timeout_s=config.http.header_timeout_s,
                    write_timeout_s=config.http.write_timeout_s,
                    max_head_bytes=config.http.max_header_bytes,
                ),
                ssl_certfile=config.http.ssl_certfile,
                ssl_keyfile=config.http.ssl_keyfile,
                timeout_graceful_shutdown=round(config.http.drain_s + _LAST_BYTES_S),
            ),
            finish=self._finish,
            hurry=self._models.hurry,
        )

    def run(self) -> None:
        """Serve until a signal or ``stop``, then drain. Raises what kept the model from starting."""
        self._uvicorn.run(sockets=[self._socket])
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Ask for the end; safe from another thread."""
        self._uvicorn.should_exit = True

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        """The port answers while the model loads: ``/health`` tells the phase."""
        self._starting = asyncio.create_task(self._start())
        yield

    async def _start(self) -> None:
        try:
            await self._models.load()
        except InterlockError as error:
            self.error = error
            self.stop()
        else:
            self._on_ready(self.url)

    async def _finish(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._models.stop()


class _HttpServer(uvicorn.Server):
    """Ends running answers by ``finish`` before it closes their connections, so that each gets its last event.

    A signal ends it normally, with status 0. A second one ends the drain time, a third one waits for nothing.
    """

    def __init__(
        self, config: uvicorn.Config, *, finish: Callable[[], Awaitable[None]], hurry: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._finish = finish
        self._hurry = hurry
        self._num_signals = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  uvicorn's signature
        self._num_signals += 1
        self.should_exit = True
        self.force_exit = self._num_signals > 2
        if self._num_signals == 2 and self._loop is not None:
            self._loop.call_soon_threadsafe(self._hurry)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        finishing = asyncio.ensure_future(self._finish())
        await super().shutdown(sockets)  # waits for the connections
        if self.force_exit:
            finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=self.force_exit)


class BackgroundServer:
    """A ``Server`` in a thread of this process, for the demo and for tests."""

    def __init__(self, config: ServerConfig) -> None:
        self._ready = threading.Event()
        self._server = Server(config, lambda _url: self._ready.set())
        self._thread = threading.Thread(target=self._run, name="interlock-server", daemon=True)
        self._failure: BaseException | None = None

    def start(self, timeout_s: float = 120.0) -> str:
        """Return the URL when requests are served. Raises what kept the model from starting."""
        self._thread.start()
        if not self._ready.wait(timeout_s):
            raise InterlockError("not_ready", f"the model was not ready after {timeout_s:g} s")
        if self._failure is not None:
            raise self._failure
        return self._server.url

    def stop(self) -> None:
        """Drain and return when everything has ended."""
        self._server.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._server.run()
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            self._failure = error
        finally:
            self._ready.set()


def run(config: ServerConfig) -> None:
    """Serve until SIGINT or SIGTERM."""
    names = ", ".join((config.served_name, *(name for name, _ in config.more_models)))
    server = Server(config, lambda url: print(f"Interlock serves {names} at {url}", flush=True))
    server.run()


def _check_certificate(http: HttpConfig) -> None:
    """Raises ``InterlockError`` before anything is loaded or bound."""
    if http.ssl_certfile is None and http.ssl_keyfile is None:
        return
    if http.ssl_certfile is None or http.ssl_keyfile is None:
        raise InterlockError("invalid_value", "TLS needs both --ssl-certfile and --ssl-keyfile")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(http.ssl_certfile, http.ssl_keyfile)
    except OSError as error:  # files that cannot be read, and ssl.SSLError
        raise InterlockError(
            "invalid_value",
            f"{http.ssl_certfile} and {http.ssl_keyfile} are no certificate and key: {error}",
            hint="Both are PEM files; the first holds the whole chain.",
        ) from error


def _bind(http: HttpConfig) -> socket.socket:
    """Raises ``InterlockError`` when the address is taken or not ours."""
    try:
        family = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sets TCP_NODELAY only where the protocol is named; without it answers wait 40 ms for an ACK.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((http.host, http.port))
    except OSError as error:
        raise InterlockError(
            "invalid_value",
            f"cannot listen on {http.host}:{http.port}: {error.strerror or error}",
            hint="Choose another --port; 0 takes any free one.",
        ) from error
    return bound
