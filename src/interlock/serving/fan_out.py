"""Several answers to one request: independent seeds, one stream of events."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from interlock.core.request import GenerateRequest

T = TypeVar("T")
_SEED_BITS = 63


def fan_out(request: GenerateRequest, n: int) -> tuple[GenerateRequest, ...]:
    """``n`` requests that differ in id and seed only: answer ``i`` is what the request with the seed
    ``seed + i`` gets. Without a seed a random one is the first."""
    if n == 1:
        return (request,)
    seed = secrets.randbits(_SEED_BITS) if request.sampling.seed is None else request.sampling.seed
    return tuple(
        replace(
            request,
            request_id=f"{request.request_id}-{i}",
            sampling=replace(request.sampling, seed=_shifted(seed, i)),
        )
        for i in range(n)
    )


def _shifted(seed: int, by: int) -> int:
    """Within the 64 bits a seed may have."""
    return seed + by if seed + by < 1 << 64 else seed + by - (1 << 64)


class FanIn(Generic[T]):
    """What several sources give, in the order it comes, each with the source's index.

    sources: give their next value. is_last: says which value is a source's last one. With one source no task
    is made.
    """

    def __init__(self, sources: Sequence[Callable[[], Awaitable[T]]], is_last: Callable[[T], bool]) -> None:
        self._sources = sources
        self._is_last = is_last
        self._tasks: dict[int, asyncio.Future[T]] = {}
        self._open = set(range(len(sources)))

    @property
    def is_open(self) -> bool:
        """Some source has more to give."""
        return bool(self._open)

    async def next(self) -> tuple[int, T]:
        """The next value. Only while ``is_open``."""
        if len(self._sources) == 1:
            index, value = 0, await self._sources[0]()
        else:
            index, value = await self._first_of_all()
        if self._is_last(value):
            self._open.discard(index)
        return index, value

    async def aclose(self) -> None:
        """Ask nobody any more."""
        self._open.clear()
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _first_of_all(self) -> tuple[int, T]:
        for index in self._open - self._tasks.keys():
            self._tasks[index] = asyncio.ensure_future(self._sources[index]())
        done, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        index = next(index for index, task in self._tasks.items() if task in done)
        # To the back of the queue: a source that is always ready must not keep the others from being heard.
        return index, self._tasks.pop(index).result()
