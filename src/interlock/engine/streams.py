"""What the client keeps per unfinished request."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from interlock.core.engine import EngineFailure, EngineFinishReason, EngineOutput, EngineRequest
from interlock.errors import InterlockError

_MOST_OUTPUTS = 512
_FEW_OUTPUTS = 64
"""A reader that is ``_MOST_OUTPUTS`` behind has its request paused until it is only ``_FEW_OUTPUTS`` behind."""


@dataclass(slots=True, eq=False)
class Stream:
    """Outputs of one request on their way to its reader.

    deadline: on the monotonic clock. submitted: the worker has been told of it. closed: nothing follows.
    paused: the reader lags, so no more is to be generated for now. delivered: all ids of the outputs so far.
    has_token: some of them are from the worker of now. blame: see ``Resumption``.
    """

    request: EngineRequest
    deadline: float
    submitted: bool = False
    closed: bool = False
    paused: bool = False
    has_token: bool = False
    blame: int = 0
    delivered: list[int] = field(default_factory=list)
    queue: asyncio.Queue[EngineOutput] = field(default_factory=asyncio.Queue)

    @property
    def has_caught_up(self) -> bool:
        """It was paused and need not be any more."""
        return self.paused and self.queue.qsize() <= _FEW_OUTPUTS

    def rest_of_request(self) -> EngineRequest:
        """What a worker is asked for, after what was delivered. Raises ``InterlockError`` past the deadline."""
        remaining_s = self.deadline - time.monotonic()
        if remaining_s <= 0:
            raise InterlockError("request_timeout", "the request ran past its time limit")
        deadline_s = None if self.request.deadline_s is None else remaining_s
        return replace(self.request, resume_ids=tuple(self.delivered), deadline_s=deadline_s)


class Streams:
    """Unfinished requests by id."""

    def __init__(self) -> None:
        self._open: dict[str, Stream] = {}

    def open(self, request: EngineRequest) -> Stream:
        """A stream for a new request. Raises ``ValueError`` for an id that is in use."""
        if request.request_id in self._open:
            raise ValueError(f"request id {request.request_id!r} is in use")
        limit_s = math.inf if request.deadline_s is None else request.deadline_s
        stream = self._open[request.request_id] = Stream(request, deadline=time.monotonic() + limit_s)
        return stream

    def get(self, request_id: str) -> Stream | None:
        return self._open.get(request_id)

    def submitted(self) -> list[Stream]:
        """What a worker is working on."""
        return [stream for stream in self._open.values() if stream.submitted]

    def close(self, stream: Stream) -> None:
        """Nothing is delivered to it any more. Idempotent."""
        if not stream.closed:
            stream.closed = True
            del self._open[stream.request.request_id]

    def deliver(self, outputs: Iterable[EngineOutput]) -> list[Stream]:
        """Hand on outputs; one whose reader has left is dropped. Returns streams that are to be paused."""
        lagging = []
        for output in outputs:
            stream = self._open.get(output.request_id)
            if stream is None:
                continue
            stream.queue.put_nowait(output)
            stream.delivered += output.token_ids
            stream.has_token = stream.has_token or bool(output.token_ids)
            if output.finish_reason is not None:
                self.close(stream)
            elif not stream.paused and stream.queue.qsize() >= _MOST_OUTPUTS:
                stream.paused = True
                lagging.append(stream)
        return lagging

    def end(self, stream: Stream, reason: EngineFinishReason, failure: InterlockError | None = None) -> None:
        """End a stream from this side."""
        output = EngineOutput(
            request_id=stream.request.request_id,
            finish_reason=reason,
            failure=None if failure is None else EngineFailure(code=failure.code, message=failure.message),
            num_prompt_tokens=len(stream.request.prompt_ids),
        )
        if not stream.closed:
            self.deliver([output])

    def fail_started(self, failure: InterlockError) -> None:
        """End what any worker was working on; what still waits for its first one goes on waiting."""
        for stream in [stream for stream in self._open.values() if stream.submitted or stream.blame]:
            self.end(stream, "error", failure)
