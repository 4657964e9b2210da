"""The verifier, seen from the engine: every token of a constrained answer is checked before it is passed on.

vLLM enforces the grammar, with its own build of the grammar engine and its own limits: where its matcher fails it ends
the answer as if the grammar had ended. A second matcher, of ours and in a process of its own, notices. It also knows
what vLLM does not tell: whether an answer may end where it was cut.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

from interlock import log
from interlock.child import Child
from interlock.core.constraint import LoweredConstraint
from interlock.errors import InterlockError
from interlock.questions import Questions
from interlock.remote.verifier_messages import (
    FROM_VERIFIER,
    Close,
    Compile,
    Compiled,
    Follow,
    Followed,
    FromVerifier,
    Open,
    Setup,
)

_log = log.get(__name__)

_START_S = 120.0


class Verifier:
    """model: what the tokenizer is read from. A process that dies is started again; the sequences are followed anew."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._numbers = itertools.count(1)
        self._child: Child[FromVerifier] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._compiling = Questions[Compiled]()
        self._following = Questions[Followed]()
        self._starting = asyncio.Lock()
        self.life = 0  # counts the processes

    async def start(self) -> None:
        """Raises ``InterlockError``."""
        async with self._starting:
            if self._child is not None:
                return
            child = Child(FROM_VERIFIER)
            try:
                await child.start("interlock.remote.verifier_process", Setup(str(self._model)), _START_S)
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
                raise InterlockError("internal_error", "the verifier did not start") from None
            self._child, self.life = child, self.life + 1
            self._reading = asyncio.create_task(self._read_answers(child))

    async def stop(self) -> None:
        """Idempotent."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    async def compile(self, constraint: LoweredConstraint) -> None:
        """Raises the ``InterlockError`` of a constraint that does not compile."""
        await self.start()
        child = self._running()
        ticket, compiled = self._compiling.ask()
        child.tell(Compile(ticket, constraint))
        answer = await compiled
        if answer.code:
            raise InterlockError(answer.code, answer.message)

    def follower(self, constraint: LoweredConstraint) -> Follower:
        """At the start of one sequence."""
        return Follower(self, next(self._numbers), constraint)

    async def ask(self, sequence: int, token_ids: Sequence[int], *, only_try: bool) -> Followed:
        """Raises ``worker_died`` where the process ended meanwhile."""
        child = self._running()
        ticket, followed = self._following.ask()
        child.tell(Follow(ticket, sequence, tuple(token_ids), only_try))
        return await followed

    def tell(self, message: Open | Close) -> None:
        """Say what has no answer; nothing happens where there is no process."""
        if self._child is not None:
            self._child.tell(message)

    def _running(self) -> Child[FromVerifier]:
        if self._child is None:
            raise _died()
        return self._child

    async def _read_answers(self, child: Child[FromVerifier]) -> None:
        try:
            while True:
                match await child.receive():
                    case Compiled(ticket=ticket) as answer:
                        self._compiling.answer(ticket, answer)
                    case Followed(ticket=ticket) as answer:
                        self._following.answer(ticket, answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            if self._child is child:
                _log.error("the verifier ended; the next request starts another one")
                self._child = None
            await child.ended()
            for questions in (self._compiling, self._following):
                questions.fail_all(_died())


class Follower:
    """One sequence in the verifier."""

    def __init__(self, verifier: Verifier, number: int, constraint: LoweredConstraint) -> None:
        self._verifier = verifier
        self._number = number
        self._constraint = constraint
        self._life = 0
        self._taken: list[int] = []
        self.is_accepting = False

    async def take(self, token_ids: Sequence[int]) -> None:
        """Raises ``matcher_failed`` where the constraint does not allow them."""
        answer = await self._ask(token_ids, only_try=False)
        if answer.num_taken < len(token_ids):
            raise InterlockError("matcher_failed", f"vLLM's answer breaks its constraint: {answer.error}")
        self._taken += token_ids
        self.is_accepting = answer.is_accepting

    async def would_take(self, token_ids: Sequence[int]) -> bool:
        """Whether ``take`` would take them."""
        return (await self._ask(token_ids, only_try=True)).num_taken == len(token_ids)

    def close(self) -> None:
        self._verifier.tell(Close(self._number))

    async def _ask(self, token_ids: Sequence[int], *, only_try: bool) -> Followed:
        for _ in range(2):
            try:
                await self._open()
                return await self._verifier.ask(self._number, token_ids, only_try=only_try)
            except InterlockError as error:
                if error.code != "worker_died":
                    raise
        raise _died()

    async def _open(self) -> None:
        await self._verifier.start()
        if self._life != self._verifier.life:
            self._life = self._verifier.life
            self._verifier.tell(Open(self._number, self._constraint))
            if self._taken:
                await self._verifier.ask(self._number, self._taken, only_try=False)


def _died() -> InterlockError:
    return InterlockError("worker_died", "the verifier stopped while this request ran")
