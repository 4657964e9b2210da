"""A Python module run as a process of its own, and the messages over its pipes: msgpack with a length of four bytes
before each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import sys
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

Received = TypeVar("Received")

_LENGTH = struct.Struct("!I")
_encoder = msgspec.msgpack.Encoder()


class Frames(Generic[Received]):
    """What one side reads. kind: the union of its messages."""

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[Received] = msgspec.msgpack.Decoder(kind)

    def read(self, stream: BinaryIO) -> Received | None:
        """The next message, ``None`` at the end. Raises ``msgspec.MsgspecError`` for anything else."""
        length = stream.read(_LENGTH.size)
        if len(length) < _LENGTH.size:
            return None
        return self._decoder.decode(stream.read(_LENGTH.unpack(length)[0]))

    async def receive(self, stream: asyncio.StreamReader) -> Received:
        """The next message. Raises ``IncompleteReadError`` and ``ConnectionError`` where the other side has ended, and
        ``msgspec.MsgspecError`` for anything else."""
        length = await stream.readexactly(_LENGTH.size)
        return self._decoder.decode(await stream.readexactly(_LENGTH.unpack(length)[0]))


def frame(message: msgspec.Struct) -> bytes:
    """``message`` with its length."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def write(stream: BinaryIO, message: msgspec.Struct) -> None:
    """All of it, on a stream without a buffer."""
    data = memoryview(frame(message))
    while data:
        data = data[stream.write(data) or 0 :]


def private_stdout() -> BinaryIO:
    """Standard output for messages alone; whatever else prints goes to standard error."""
    messages = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return messages


class Child(Generic[Received]):
    """One process, from its start to its end. ``receive`` raises what ``Frames.receive`` does."""

    def __init__(self, frames: Frames[Received]) -> None:
        self._frames = frames
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, module: str, setup: msgspec.Struct, timeout_s: float) -> Received:
        """Run ``module``; its answer to ``setup``. Raises ``TimeoutError`` and what ``receive`` raises; nothing runs then."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(timeout_s):
                await self.send(setup)
                return await self.receive()
        except BaseException:
            await self.kill()
            raise

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    def tell(self, message: msgspec.Struct) -> None:
        """Send without waiting; who receives notices where it has ended."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._stdin.write(frame(message))

    async def send(self, message: msgspec.Struct) -> None:
        """Raises ``ConnectionError`` where it has ended."""
        self._stdin.write(frame(message))
        await self._stdin.drain()

    async def receive(self) -> Received:
        assert self._process is not None
        assert self._process.stdout is not None
        return await self._frames.receive(self._process.stdout)

    async def ended(self) -> int:
        """Its status, once it has one."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        """End it. Idempotent."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin
