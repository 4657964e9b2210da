"""One helper process, seen from the pool."""

from __future__ import annotations

import asyncio
import signal

from interlock.child import Child
from interlock.compiling.messages import FROM_HELPER, Answer, AnyJob, FromHelper, Ready, Setup

_START_S = 60.0


class HelperDiedError(Exception):
    """The process ended while an answer was due."""


class HelperTimeoutError(Exception):
    """No answer in time, or no processor time left; the process has ended."""


class HelperProcess:
    """Started lazily and again after each death. One job at a time."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._child: Child[FromHelper] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start and wait until it can work. Raises ``HelperDiedError``."""
        child = Child(FROM_HELPER)
        try:
            answer = await child.start("interlock.compiling.helper", self._setup, _START_S)
        except TimeoutError:
            raise HelperDiedError(f"not ready after {_START_S:g} s") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise HelperDiedError(f"it ended with status {await child.ended()}") from None
        self._child = child
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
        child, self._child = self._child, None
        if child is not None:
            await child.kill()

    async def _exchange(self, job: AnyJob) -> FromHelper:
        child = self._child
        if child is None:
            raise HelperDiedError("not running")
        try:
            await child.send(job)
            return await child.receive()
        except (asyncio.IncompleteReadError, ConnectionError):
            status = await child.ended()
            if status == -signal.SIGPROF:
                raise HelperTimeoutError from None
            raise HelperDiedError(f"it ended with status {status}") from None
