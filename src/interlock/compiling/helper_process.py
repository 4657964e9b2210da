"""One helper process, seen from the pool."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

from interlock.compiling.messages import (
    HEADER,
    Answer,
    AnyJob,
    FromHelper,
    Ready,
    Setup,
    ToHelper,
    decode_from_helper,
    frame,
)

_START_S = 60.0


class HelperDiedError(Exception):
    """The process ended while an answer was due."""


class HelperTimeoutError(Exception):
    """No answer in time, or no processor time left; the process has ended."""


class HelperProcess:
    """Started lazily and again after each death. One job at a time."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Start and wait until it can work. Raises ``HelperDiedError``."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "interlock.compiling.helper",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            answer = await asyncio.wait_for(self._exchange(self._setup), _START_S)
        except TimeoutError:
            await self.kill()
            raise HelperDiedError(f"not ready after {_START_S:g} s") from None
        except BaseException:
            await self.kill()
            raise
        if not isinstance(answer, Ready):
            await self.kill()
            raise HelperDiedError(f"unexpected answer {type(answer).__name__}")

    async def ensure_started(self) -> None:
        """Start it if it is not running. Raises ``HelperDiedError``."""
        if self.pid is None:  # never started, killed by us, or dead while idle
            await self.start()

    async def ask(self, job: AnyJob, timeout_s: float) -> Answer:
        """Run one job. Raises ``HelperTimeoutError`` and ``HelperDiedError``; either way the next job gets a new process.
        Needs ``ensure_started``."""
        try:
            answer = await asyncio.wait_for(self._exchange(job), timeout_s)
        except TimeoutError:
            await self.kill()
            raise HelperTimeoutError from None
        except BaseException:
            await self.kill()  # also when cancelled: a late answer must not meet the next job
            raise
        if isinstance(answer, Ready):
            await self.kill()
            raise HelperDiedError("unexpected answer Ready")
        return answer

    async def kill(self) -> None:
        """End the process. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def _exchange(self, message: ToHelper) -> FromHelper:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise HelperDiedError("not running")
        try:
            process.stdin.write(frame(message))
            await process.stdin.drain()
            header = await process.stdout.readexactly(HEADER.size)
            return decode_from_helper(await process.stdout.readexactly(HEADER.unpack(header)[0]))
        except (asyncio.IncompleteReadError, ConnectionError):
            status = await process.wait()
            if status == -signal.SIGPROF:
                raise HelperTimeoutError from None
            raise HelperDiedError(f"it ended with status {status}") from None
