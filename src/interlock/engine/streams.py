"""What the client keeps per unfinished request, and per question to the worker."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from interlock.core.engine import EngineFailure, EngineFinishReason, EngineOutput, EngineRequest
from interlock.errors import InterlockError

Answer = TypeVar("Answer")


@dataclass(slots=True, eq=False)
class Stream:
    """Outputs of one request on their way to its reader. submitted: a worker has been told of it."""

    request: EngineRequest
    submitted: bool = False
    queue: asyncio.Queue[EngineOutput] = field(default_factory=asyncio.Queue)


class Streams:
    """Unfinished requests by id."""

    def __init__(self) -> None:
        self._open: dict[str, Stream] = {}

    def open(self, request: EngineRequest) -> Stream:
        """A stream for a new request. Raises ``ValueError`` for an id that is in use."""
        if request.request_id in self._open:
            raise ValueError(f"request id {request.request_id!r} is in use")
        stream = self._open[request.request_id] = Stream(request)
        return stream

    def get(self, request_id: str) -> Stream | None:
        return self._open.get(request_id)

    def is_open(self, stream: Stream) -> bool:
        return self._open.get(stream.request.request_id) is stream

    def close(self, stream: Stream) -> None:
        """Nothing is delivered to it any more. Idempotent."""
        if self.is_open(stream):
            del self._open[stream.request.request_id]

    def deliver(self, output: EngineOutput) -> None:
        """Hand on an output; one whose reader has left is dropped."""
        stream = self._open.get(output.request_id)
        if stream is None:
            return
        stream.queue.put_nowait(output)
        if output.finish_reason is not None:
            self.close(stream)

    def end(self, stream: Stream, reason: EngineFinishReason, failure: InterlockError | None = None) -> None:
        """End a stream from this side."""
        self.deliver(
            EngineOutput(
                request_id=stream.request.request_id,
                finish_reason=reason,
                failure=None if failure is None else EngineFailure(code=failure.code, message=failure.message),
                num_prompt_tokens=len(stream.request.prompt_ids),
            )
        )

    def fail_submitted(self, failure: InterlockError) -> None:
        """End what a worker was working on; what still waits for one goes on waiting."""
        for stream in [stream for stream in self._open.values() if stream.submitted]:
            self.end(stream, "error", failure)


class Questions(Generic[Answer]):
    """Answers that the worker owes, by ticket."""

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
        if ticket in self._open:
            self._open.pop(ticket).set_result(answer)

    def fail_all(self, failure: InterlockError) -> None:
        for answer in list(self._open.values()):
            if not answer.done():
                answer.set_exception(failure)
