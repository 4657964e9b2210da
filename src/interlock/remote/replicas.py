"""Several vLLM servers with the same model: who gets a request, who is up, and what is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

from interlock import log
from interlock.core.engine import EngineRequest
from interlock.errors import InterlockError
from interlock.remote.replica import Replica, ReplicaLostError
from interlock.remote.wire import Chunk

_log = log.get(__name__)

_CHECK_EVERY_S = 1.0
_WAIT_S = 60.0
_SLACK = 2
"""A replica that knows a prompt's beginning may be this many requests busier than the idlest."""


class Replicas:
    """on_change: called when one comes or goes."""

    def __init__(self, replicas: Sequence[Replica], on_change: Callable[[], None]) -> None:
        self.all = tuple(replicas)
        self.num_lost = 0
        self._known_up: frozenset[Replica] = frozenset()
        self._on_change = on_change
        self._changed = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None

    @property
    def up(self) -> list[Replica]:
        return [replica for replica in self.all if replica.is_up]

    async def start(self, timeout_s: float) -> None:
        """Return when one is up. Raises ``InterlockError``."""
        try:
            async with asyncio.timeout(timeout_s):
                while not await self._check():
                    for replica in self.all:
                        if replica.problem is not None:
                            raise replica.problem
                    await asyncio.sleep(_CHECK_EVERY_S)
        except TimeoutError:
            urls = ", ".join(replica.url for replica in self.all)
            raise InterlockError("not_ready", f"no vLLM answered within {timeout_s:g} s at {urls}") from None
        self._checking = asyncio.create_task(self._keep_checking())

    async def stop(self) -> None:
        if self._checking is not None:
            self._checking.cancel()
            with suppress(asyncio.CancelledError):
                await self._checking
        for replica in self.all:
            await replica.close()

    async def stream(self, request: EngineRequest) -> AsyncGenerator[Chunk, None]:
        """The answer of one of them. One that is lost before its first token is replaced by another, each tried
        once. Raises ``worker_died`` after that, ``not_ready`` where none comes up, and refusals."""
        tried: set[Replica] = set()
        while True:
            replica = await self._choose(request, tried)
            has_begun = False
            try:
                async with aclosing(replica.stream(request)) as chunks:
                    async for chunk in chunks:
                        has_begun = True
                        yield chunk
                return
            except ReplicaLostError as error:
                self._lost(replica, error)
                if error.reached:
                    tried.add(replica)
                if has_begun:
                    raise InterlockError(
                        "worker_died", "the vLLM server stopped while this request ran"
                    ) from None

    async def _choose(self, request: EngineRequest, tried: set[Replica]) -> Replica:
        """The least loaded one, but of those that are about as idle the one that knows most of the prompt."""
        try:
            async with asyncio.timeout(min(_WAIT_S, request.deadline_s or _WAIT_S)):
                while not (free := [replica for replica in self.up if replica not in tried]):
                    if tried.issuperset(self.all):
                        raise InterlockError(
                            "worker_died", "every vLLM server stopped while this request waited"
                        )
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise InterlockError("not_ready", "no vLLM server answers") from None
        least = min(replica.num_running for replica in free)
        idle = [replica for replica in free if replica.num_running <= least + _SLACK]
        return max(idle, key=lambda one: (one.num_known(request.prompt_ids), -one.num_running))

    def _lost(self, replica: Replica, error: ReplicaLostError) -> None:
        _log.error("a vLLM server is lost: %s", error)
        replica.lose()
        self._note_changes()

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_EVERY_S)
            await self._check()

    async def _check(self) -> bool:
        await asyncio.gather(*(replica.check() for replica in self.all))
        self._note_changes()
        return bool(self.up)

    def _note_changes(self) -> None:
        before, self._known_up = self._known_up, frozenset(self.up)
        if before != self._known_up:
            self.num_lost += len(before - self._known_up)
            self._changed.set()
            self._on_change()
