"""One worker as the API process sees it: a process, a socket, its last words."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE, STDOUT, Process
from contextlib import suppress
from pathlib import Path

import zmq

from interlock import env, log
from interlock.config import EngineConfig
from interlock.engine.ipc.channel import check_hello, decode_from_worker, encode
from interlock.engine.ipc.messages import ClientMessage, Hello, WorkerMessage
from interlock.engine.ipc.startup import Startup, encode_startup

WORKER_MODULE = "interlock.engine.worker"

_log = log.get(__name__)

_HIGH_WATER_MARK = 10_000
_HANDSHAKE_S = 60.0
_LAST_WORDS_CHARS = 4000
_LAST_WORDS_LINES = 12


class WorkerProcess:
    """Every worker gets an endpoint of its own, so nothing of a dead one is left over. To be closed."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="interlock-"))  # mode 0700: the socket is ours alone
        self._endpoint = f"ipc://{self._folder}/worker"
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.set_hwm(_HIGH_WATER_MARK)  # outputs that nobody takes then block the worker
        self._socket.bind(self._endpoint)
        self._inbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: Process | None = None
        self._pump: asyncio.Task[None] | None = None
        self._output = ""

    async def start(self, config: EngineConfig, module: str = WORKER_MODULE) -> None:
        """Start the process; its first message is to be asked for by ``hello``. Raises ``OSError``."""
        startup = Startup(
            endpoint=self._endpoint, log_level=_log_level(), log_format=log.current_format(), config=config
        )
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.FD, self._take_in)
        creating = asyncio.create_task(self._create("-m", module, encode_startup(startup)))
        try:
            await asyncio.shield(creating)
        finally:
            await asyncio.wait({creating})  # asyncio hangs when the creation of a process is cancelled

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def last_words(self) -> str:
        """The last lines the worker printed."""
        return "\n".join(self._output.strip().splitlines()[-_LAST_WORDS_LINES:])

    async def hello(self) -> Hello:
        """The worker's first message. Raises ``ProtocolError``, or ``TimeoutError`` when none comes."""
        async with asyncio.timeout(_HANDSHAKE_S):
            return check_hello(await self.receive())

    async def receive(self) -> WorkerMessage:
        """The next message. Raises ``ProtocolError`` for one that is none."""
        return decode_from_worker(await self._inbox.get())

    def send(self, message: ClientMessage) -> None:
        """Send without waiting. Lost when the worker is dead, which ``wait`` tells; one that has not taken the
        messages before is ended."""
        try:
            self._socket.send(encode(message), zmq.NOBLOCK)
        except zmq.Again:
            _log.error("the model worker takes no messages and is ended")
            self.kill()
        self._take_in()  # the descriptor may not report again what arrived in the meantime

    def _take_in(self) -> None:
        """What has arrived. ``zmq.asyncio`` would do it with several callbacks for each message, which cost as much
        as all else that a token costs in this process."""
        with suppress(zmq.Again):
            while True:
                self._inbox.put_nowait(self._socket.recv(zmq.NOBLOCK))

    def kill(self) -> None:
        """End the process at once; ``wait`` tells when it has gone."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def wait(self) -> int:
        """Until the started process has ended and all it printed was read: its exit status."""
        assert self._process is not None
        assert self._pump is not None
        status = await self._process.wait()
        await asyncio.wait({self._pump})
        return status

    async def close(self) -> None:
        """End the process if it still runs, and free everything."""
        try:
            if self._process is not None:
                self.kill()
                await self.wait()
                assert self._process.stdin is not None
                self._process.stdin.close()
        finally:  # also when this is cancelled
            if self._loop is not None:
                self._loop.remove_reader(self._socket.FD)
            self._socket.close(linger=0)
            self._context.term()
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _create(self, *arguments: str) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdin=PIPE, stdout=PIPE, stderr=STDOUT, env=env.of_a_worker()
        )
        self._pump = asyncio.create_task(self._pass_output_on(self._process))

    async def _pass_output_on(self, process: Process) -> None:
        assert process.stdout is not None
        while chunk := await process.stdout.read(8192):
            text = chunk.decode(errors="replace")
            self._output = (self._output + text)[-_LAST_WORDS_CHARS:]
            sys.stderr.write(text)
            sys.stderr.flush()


def _log_level() -> str:
    return logging.getLevelName(log.get("interlock").getEffectiveLevel()).lower()
