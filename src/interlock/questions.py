"""Questions to another process that are answered later, in any order."""

from __future__ import annotations

import asyncio
import itertools
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Questions(Generic[Answer]):
    """Answers that another process owes, by ticket."""

    def __init__(self) -> None:
        self._tickets = itertools.count()
        self._open: dict[int, asyncio.Future[Answer]] = {}

    def ask(self) -> tuple[int, asyncio.Future[Answer]]:
        """A new ticket, and what will be its answer."""
        ticket = next(self._tickets)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[ticket] = answer
        answer.add_done_callback(lambda _: self._open.pop(ticket, None))
        return ticket, answer

    def answer(self, ticket: int, answer: Answer) -> None:
        """Unknown tickets are ignored: who asked has left."""
        asked = self._open.get(ticket)
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def fail_all(self, failure: Exception) -> None:
        for answer in list(self._open.values()):
            if not answer.done():
                answer.set_exception(failure)
