"""Start, readiness, drain and stop of what the service stands on."""

from __future__ import annotations

import asyncio

from interlock import log
from interlock.config import LOAD_AT_START, LoadConfig
from interlock.core.engine import Engine, EnginePhase
from interlock.errors import InterlockError
from interlock.serving.in_flight import InFlight, Ticket
from interlock.serving.loading import Loading
from interlock.serving.model import Lowerer

_log = log.get(__name__)


class Lifecycle:
    """Owns the compile pool's and the engine's running. name: the model's, for the log."""

    def __init__(
        self,
        engine: Engine,
        compile_pool: Lowerer,
        in_flight: InFlight,
        drain_s: float,
        load: LoadConfig = LOAD_AT_START,
        name: str = "",
    ) -> None:
        self._engine = engine
        self._loading = Loading(engine, in_flight, load, name)
        self._compile_pool = compile_pool
        self._drain_s = drain_s
        self._started = self._stopping = False
        self._hurried = asyncio.Event()
        self.in_flight = in_flight

    @property
    def phase(self) -> EnginePhase:
        """The engine's phase, ``stopping`` from the first moment of a stop; ``unloaded`` only after the start."""
        if self._stopping:
            return "stopping"
        phase = self._engine.phase
        return "starting" if phase == "unloaded" and not self._started else phase

    async def start(self) -> None:
        """Return when requests can be taken. Raises what kept the engine or the pool from starting."""
        try:
            await self._compile_pool.start()
            await self._loading.start()
            self._started = True
        except BaseException:
            await self.stop()
            raise

    def admit(self) -> Ticket:
        """A place for one request. Raises ``not_ready``, ``shutting_down`` or ``overloaded``.

        While a worker is restarted requests are taken: the engine lets them wait for it.
        """
        if not self._stopping:
            self.require_ready()
        return self.in_flight.enter()

    async def wake(self) -> None:
        """Return when the engine is loaded, for whoever was admitted. Raises what keeps it from being so."""
        await self._loading.wake()

    def require_ready(self) -> None:
        """Raises ``not_ready`` before the model was ready, and where it cannot become so."""
        if not self._started or self.phase == "failed":
            raise InterlockError("not_ready", f"the model is not ready: {self.phase.replace('_', ' ')}")

    async def stop(self) -> None:
        """Refuse new requests, let running ones finish for the drain time, then stop everything."""
        self._stopping = True
        self.in_flight.close()
        await self._drain()
        if self.in_flight.num_requests:
            _log.warning("stopping with %d requests unfinished", self.in_flight.num_requests)
        try:
            await self._loading.stop()
            await self._engine.stop()
        finally:
            await self._compile_pool.stop()

    def hurry(self) -> None:
        """End the drain time of a ``stop``, now or later."""
        self._hurried.set()

    async def _drain(self) -> None:
        draining = asyncio.create_task(self.in_flight.drain(self._drain_s))
        hurried = asyncio.create_task(self._hurried.wait())
        try:
            await asyncio.wait({draining, hurried}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            draining.cancel()
            hurried.cancel()
            await asyncio.gather(draining, hurried, return_exceptions=True)
