"""The outputs of one request: vLLM's tokens, checked, with thinking ended where its budget is used up."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from msgspec import structs

from interlock.constraints.thinking import ThinkingProgress
from interlock.core.engine import EngineFinishReason, EngineOutput, EngineRequest, TokenLogprob
from interlock.core.timings import RequestTimings
from interlock.errors import InterlockError
from interlock.remote.replicas import Replicas
from interlock.remote.verifier import Verifier
from interlock.remote.wire import Chunk


class Answering:
    """A thinking budget takes two requests: the first one is broken off at the budget, the closing tokens are put behind
    what it said, and the second one goes on from there, held to what may follow thinking."""

    def __init__(self, replicas: Replicas, verifier: Verifier, request: EngineRequest) -> None:
        self._replicas = replicas
        self._request = request
        self._follower = None if request.constraint is None else verifier.follower(request.constraint)
        self._thinking = None if request.thinking is None else ThinkingProgress.start(request.thinking)
        self._said: list[int] = []
        self._num_forced = self._num_cached = 0
        self._reason: str | None = None
        self._started = time.perf_counter()
        self._first_token_s = 0.0

    async def outputs(self) -> AsyncGenerator[EngineOutput, None]:
        """Ends with exactly one that has a finish reason. Raises ``InterlockError``."""
        try:
            while self._reason is None:
                closing = await self._closing_ids()
                if closing:
                    self._num_forced += len(closing)
                    yield await self._output(closing, tuple(map(_certain, closing)))
                if len(self._said) >= self._request.max_tokens:
                    self._reason = "length"
                    break
                async with aclosing(self._leg()) as leg:
                    async for output in leg:
                        yield output
            yield await self._end()
        finally:
            if self._follower is not None:
                self._follower.close()

    async def _leg(self) -> AsyncGenerator[EngineOutput, None]:
        """One request to vLLM, to its end or to where thinking must be closed."""
        async with aclosing(self._replicas.stream(self._rest())) as chunks:
            async for chunk in chunks:
                self._num_cached = max(self._num_cached, chunk.num_cached_tokens or 0)
                for token_ids, logprobs in self._pieces(chunk):
                    yield await self._output(token_ids, logprobs)
                    if await self._must_close():
                        return
                self._reason = chunk.finish_reason or self._reason
        if self._reason not in ("stop", "length"):
            raise InterlockError("worker_died", f"vLLM ended the answer early ({self._reason})")

    def _rest(self) -> EngineRequest:
        """What of the request is still to be answered."""
        request = self._request
        if not self._said:
            return request
        rest = None if request.thinking is None else request.thinking.rest
        return replace(
            request,
            request_id=f"{request.request_id}-{len(self._said)}",
            prompt_ids=(*request.prompt_ids, *self._said),
            max_tokens=request.max_tokens - len(self._said),
            constraint=rest,
        )

    def _pieces(self, chunk: Chunk) -> Iterator[tuple[tuple[int, ...], tuple[TokenLogprob, ...]]]:
        """The tokens of a chunk without the stop id: together, or one by one while thinking is counted."""
        token_ids = chunk.token_ids
        if chunk.finish_reason == "stop" and token_ids and token_ids[-1] in self._request.stop_ids:
            token_ids = token_ids[:-1]
        size = max(len(token_ids), 1) if self._thinking is None or self._thinking.is_over else 1
        for start in range(0, len(token_ids), size):
            yield token_ids[start : start + size], chunk.logprobs[start : min(start + size, len(token_ids))]

    async def _must_close(self) -> bool:
        """Whether the thinking budget is used up, and the constraint lets thinking end here (inside a character it
        does not)."""
        forced = None if self._thinking is None else self._thinking.forced_id
        if forced is None:
            return False
        return self._follower is None or await self._follower.would_take([forced])

    async def _closing_ids(self) -> tuple[int, ...]:
        """What ends thinking, as far as the model has not begun it itself; nothing where it need not end."""
        if not await self._must_close():
            return ()
        ids, progress = [], self._thinking
        while progress is not None and progress.forced_id is not None:
            ids.append(progress.forced_id)
            progress = progress.after(progress.forced_id)
        return tuple(ids[: self._request.max_tokens - len(self._said)])

    async def _output(self, token_ids: Sequence[int], logprobs: tuple[TokenLogprob, ...]) -> EngineOutput:
        if self._follower is not None:
            await self._follower.take(token_ids)
        if not self._said:
            self._first_token_s = time.perf_counter() - self._started
        self._said += token_ids
        if self._thinking is not None:
            for token_id in token_ids:
                self._thinking = self._thinking.after(token_id)
        accepting = None
        if self._follower is not None and self._request.report_accepting:
            accepting = self._follower.is_accepting
        return self._made(token_ids=tuple(token_ids), logprobs=logprobs, is_accepting=accepting)

    async def _end(self) -> EngineOutput:
        accepting, reason = None, self._reason
        if self._follower is not None:
            await self._follower.take(())
            accepting = self._follower.is_accepting
            if reason == "stop" and not accepting:
                raise InterlockError("matcher_failed", "vLLM ended the answer where its constraint may not end")
        finished: EngineFinishReason = "stop" if reason == "stop" else "length"
        return self._made(finish_reason=finished, is_accepting=accepting, timings=self._timings())

    def _timings(self) -> RequestTimings:
        whole_s = time.perf_counter() - self._started
        return RequestTimings(
            prefill_s=self._first_token_s, decode_s=whole_s - self._first_token_s, num_forced=self._num_forced
        )

    def _made(self, **fields: object) -> EngineOutput:
        base = EngineOutput(
            request_id=self._request.request_id,
            num_prompt_tokens=len(self._request.prompt_ids),
            num_cached_tokens=self._num_cached,
        )
        return structs.replace(base, **fields)


def _certain(token_id: int) -> TokenLogprob:
    """The score of a token without a choice."""
    return TokenLogprob(token_id=token_id, logprob=0.0)
