"""When a model's engine runs: from the start on or from the first request, and until the end or until it is idle."""

from __future__ import annotations

import asyncio

from interlock import log
from interlock.config import LoadConfig
from interlock.core.engine import Engine
from interlock.errors import InterlockError
from interlock.serving.in_flight import InFlight

_log = log.get(__name__)


class Loading:
    """Starts and stops ``engine``, which must bear a start after a stop unless ``config`` is the default.

    One that has no request in flight is never stopped between a ``wake`` and the request's end, because a request enters
    ``in_flight`` before it wakes.
    """

    def __init__(self, engine: Engine, in_flight: InFlight, config: LoadConfig, name: str) -> None:
        self._engine = engine
        self._in_flight = in_flight
        self._config = config
        self._name = name
        self._starting: asyncio.Task[None] | None = None
        self._unloading: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        in_flight.on_change = self._rearm

    async def start(self) -> None:
        """Load what is to be loaded at the start. Raises what keeps the engine from starting."""
        if not self._config.on_demand:
            await self._engine.start()
            self._rearm()

    async def wake(self) -> None:
        """Return when the engine can serve; where it is loaded now, all who wait share one try. Raises what keeps it
        from starting, and the next one tries again."""
        if self._unloading is not None:
            await asyncio.wait({self._unloading})
        if self._engine.phase == "unloaded" and self._starting is None:
            _log.info("%s is loaded on demand", self._name)
            self._starting = asyncio.create_task(self._engine.start())
            self._starting.add_done_callback(self._started)
        starting = self._starting
        if starting is None:
            return
        await asyncio.wait({starting})  # which goes on when the one who waits is cancelled
        if starting.cancelled():
            raise InterlockError("shutting_down", "the server is stopping")
        starting.result()

    async def stop(self) -> None:
        """End what this has under way; the engine is the caller's to stop."""
        self._in_flight.on_change = lambda: None
        self._disarm()
        if self._starting is not None:
            self._starting.cancel()
        running = [task for task in (self._starting, self._unloading) if task is not None]
        await asyncio.gather(*running, return_exceptions=True)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled() and task.exception() is not None:
            _log.error("%s could not be loaded: %s", self._name, task.exception())
        self._rearm()

    def _rearm(self) -> None:
        """An idle engine is unloaded ``unload_after_s`` after its last request."""
        self._disarm()
        if self._config.unload_after_s is not None and not self._in_flight.num_requests:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._config.unload_after_s, self._unload)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _unload(self) -> None:
        if self._engine.phase in ("ready", "failed"):
            _log.info("%s is idle and is unloaded", self._name)
            self._unloading = asyncio.create_task(self._engine.stop())
            self._unloading.add_done_callback(self._unloaded)

    def _unloaded(self, _task: asyncio.Task[None]) -> None:
        self._unloading = None
