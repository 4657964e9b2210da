"""One running request: a task that reads vLLM's answer, and whoever waits for the outputs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from interlock import log
from interlock.core.engine import EngineFailure, EngineFinishReason, EngineOutput, EngineRequest
from interlock.errors import InterlockError

_log = log.get(__name__)

_MAX_WAITING = 64  # outputs; a slow reader holds up the reading from vLLM, and so vLLM


class RemoteStream:
    """Ends with exactly one output that has a finish reason."""

    def __init__(self, request: EngineRequest) -> None:
        self._request = request
        self._queue: asyncio.Queue[EngineOutput] = asyncio.Queue(_MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._last: EngineOutput | None = None  # nothing comes behind it, and what waits is dropped

    def run(self, outputs: AsyncGenerator[EngineOutput, None]) -> None:
        """Read ``outputs`` from now on."""
        self._task = asyncio.create_task(self._read(outputs))

    async def next(self) -> EngineOutput:
        return self._last if self._last is not None and self._queue.empty() else await self._queue.get()

    def end(self, reason: EngineFinishReason, failure: EngineFailure | None = None) -> None:
        """End it now."""
        if self._last is not None:
            return
        self.cancel()
        while not self._queue.empty():
            self._queue.get_nowait()
        self._last = EngineOutput(
            request_id=self._request.request_id,
            finish_reason=reason,
            failure=failure,
            num_prompt_tokens=len(self._request.prompt_ids),
        )
        self._queue.put_nowait(self._last)

    def fail(self, error: InterlockError) -> None:
        self.end("error", EngineFailure(code=error.code, message=error.message))

    def cancel(self) -> None:
        """Stop reading; vLLM ends a request whose connection is closed. Only once: a second time would break off the
        closing."""
        task = self._task
        if task is not None and task is not asyncio.current_task() and not task.cancelling():
            task.cancel()

    async def _read(self, outputs: AsyncGenerator[EngineOutput, None]) -> None:
        try:
            async with asyncio.timeout(self._request.deadline_s), aclosing(outputs):
                async for output in outputs:
                    await self._queue.put(output)
        except TimeoutError:
            self.fail(InterlockError("request_timeout", "the request ran past its time limit"))
        except InterlockError as error:
            await self._deliver_then_fail(error)
        except Exception as error:  # noqa: BLE001 - the edge of a task: the request ends, others go on
            _log.exception("reading an answer of vLLM failed")
            self.fail(InterlockError("internal_error", f"reading vLLM's answer failed: {error}"))

    async def _deliver_then_fail(self, error: InterlockError) -> None:
        """What came before the error is delivered first."""
        await self._queue.put(
            EngineOutput(
                request_id=self._request.request_id,
                finish_reason="error",
                failure=EngineFailure(code=error.code, message=error.message),
                num_prompt_tokens=len(self._request.prompt_ids),
            )
        )
