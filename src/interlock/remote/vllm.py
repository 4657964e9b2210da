"""``VllmEngine``: vLLM behind the ``Engine`` protocol, for models that need more than one machine.

Interlock renders, resolves, lowers and parses; vLLM gets token ids and the lowered grammar, and gives token ids. What
it says is checked token by token by a matcher of our own before it is passed on (``verifier``).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

from interlock import log
from interlock.config import VllmConfig
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import (
    Enforcement,
    EngineOutput,
    EnginePhase,
    EngineRequest,
    EngineStats,
    EngineTraits,
)
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.errors import InterlockError
from interlock.metrics import Metrics
from interlock.remote.answer import Answering
from interlock.remote.refused import check_request
from interlock.remote.replica import Replica
from interlock.remote.replicas import Replicas
from interlock.remote.stream import RemoteStream
from interlock.remote.verifier import Verifier

_log = log.get(__name__)

_MAX_PREPARED = 4096
PROBE = 'Hello, world! naïve 東京 {"a": [1.5, null]}\n\n  x'
"""Text whose ids must be the same here and there."""


class VllmEngine:
    """Implements ``core.engine.Engine``. Request ids must be unique among unfinished requests."""

    def __init__(self, config: VllmConfig, tokenizer: Tokenizer, metrics: Metrics | None = None) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._metrics = metrics
        self._verifier = Verifier(config.tokenizer)
        self._replicas = Replicas(
            [Replica(url, config.api_key, config.model) for url in config.urls], self._replicas_changed
        )
        self._phase: EnginePhase = "starting"
        self._is_stopping = False
        self._streams: dict[str, RemoteStream] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._prepared: OrderedDict[str, InterlockError | None] = OrderedDict()
        self._totals = EngineStats()
        self._max_context_tokens = 0
        self._num_lost_told = 0

    @property
    def phase(self) -> EnginePhase:
        return self._phase

    @property
    def max_context_tokens(self) -> int:
        return self._max_context_tokens

    @property
    def traits(self) -> EngineTraits:
        enforcement = Enforcement(masks="vllm", tokens="interlock", guards=None)
        return EngineTraits(continues_constraints=False, closes_on_length=False, enforcement=enforcement)

    async def start(self) -> None:
        self._enter("loading_model")
        try:
            await asyncio.gather(self._verifier.start(), self._replicas.start(self._config.start_s))
            await self._check_tokenizer()
        except BaseException:
            self._enter("failed")
            await self._close()
            raise
        facts = [replica.facts for replica in self._replicas.up if replica.facts is not None]
        self._max_context_tokens = min(fact.context_tokens for fact in facts)
        for replica in self._replicas.up:
            _log.info("vLLM at %s: %s", replica.url, replica.facts)
        self._enter("ready")
        if self._is_stopping:
            raise InterlockError("shutting_down", "the engine was stopped while it started")

    def check(self, request: EngineRequest) -> None:
        check_request(request, self._tokenizer.vocabulary.special_ids)

    async def prepare(self, constraint: LoweredConstraint) -> None:
        """Compiled here, then tried on vLLM with one token, since its grammar engine is not of our version. Both once
        for a constraint."""
        if (
            constraint.guards
        ):  # the compile pool refuses what needs one, by its keyword, where it is told of the engine
            raise InterlockError(
                "invalid_schema", "the engine vllm has no guards, and the constraint needs one"
            )
        if constraint.key not in self._prepared:
            await self._verifier.compile(constraint)
            self._prepared[constraint.key] = await self._refusal(constraint)
            while len(self._prepared) > _MAX_PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(constraint.key)
        refusal = self._prepared[constraint.key]
        if refusal is not None:
            raise refusal

    async def generate(self, request: EngineRequest) -> AsyncIterator[EngineOutput]:
        stream = RemoteStream(request)
        if self._phase in ("stopping", "failed", "starting", "loading_model"):
            code = "shutting_down" if self._phase == "stopping" else "not_ready"
            stream.fail(InterlockError(code, f"the engine is {self._phase.replace('_', ' ')}"))
        else:
            self._streams[request.request_id] = stream
            self._idle.clear()
            stream.run(Answering(self._replicas, self._verifier, request).outputs())
        try:
            while True:
                output = await stream.next()
                self._count(output)
                yield output
                if output.finish_reason is not None:
                    return
        finally:
            stream.cancel()
            self._streams.pop(request.request_id, None)
            if not self._streams:
                self._idle.set()

    async def abort(self, request_id: str) -> None:
        stream = self._streams.get(request_id)
        if stream is not None:
            stream.end("abort")

    async def stats(self) -> EngineStats:
        """Counters since this process started; what vLLM itself counts is under its own /metrics."""
        return replace(
            self._totals,
            num_running=len(self._streams),
            num_slots=len(self._replicas.up),
            restarts=self._replicas.num_lost,
        )

    async def stop(self, drain_s: float = 0.0) -> None:
        self._enter("stopping")
        self._is_stopping = True
        if drain_s > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), drain_s)
        for stream in self._streams.values():
            stream.fail(InterlockError("shutting_down", "the server is stopping"))
        await self._close()

    async def _close(self) -> None:
        await self._replicas.stop()
        await self._verifier.stop()

    async def _check_tokenizer(self) -> None:
        """Ids mean the same on both sides, or nothing that comes back would mean anything."""
        for replica in self._replicas.up:
            theirs = await replica.tokenize(PROBE)
            if theirs != self._tokenizer.encode(PROBE):
                raise InterlockError(
                    "invalid_value",
                    f"the tokenizer of {self._config.tokenizer} is not the one of the model at {replica.url}",
                    hint="give the model's own folder or file with --tokenizer",
                )

    async def _refusal(self, constraint: LoweredConstraint) -> InterlockError | None:
        """Why vLLM does not take ``constraint``. Raises what says nothing about it."""
        request = EngineRequest(
            request_id=f"prepare-{constraint.key[:16]}",
            prompt_ids=tuple(self._tokenizer.encode_text("a"))[:1],
            sampling=SamplingParams(temperature=0.0),
            max_tokens=1,
            stop_ids=self._tokenizer.vocabulary.stop_ids,
            constraint=constraint,
        )
        try:
            async for _ in Answering(self._replicas, self._verifier, request).outputs():
                pass
        except InterlockError as error:
            if error.code == "matcher_failed":  # as where its grammar engine is another one
                return InterlockError(
                    "invalid_grammar",
                    "vLLM's grammar engine does not take this constraint",
                    hint='vLLM has to run with --structured-outputs-config \'{"backend": "guidance"}\'',
                )
            if error.entry.status != 400:
                raise
            return InterlockError("invalid_grammar", error.message)
        return None

    def _enter(self, phase: EnginePhase) -> None:
        if not self._is_stopping:
            self._phase = phase

    def _replicas_changed(self) -> None:
        if self._phase == "ready" and not self._replicas.up:
            self._phase = "restarting"
        elif self._phase == "restarting" and self._replicas.up:
            self._phase = "ready"
        lost = self._replicas.num_lost - self._num_lost_told
        self._num_lost_told += lost
        if self._metrics is not None:
            self._metrics.worker_restarts.inc(lost)

    def _count(self, output: EngineOutput) -> None:
        ended = output.finish_reason is not None
        totals = self._totals
        self._totals = replace(
            totals,
            num_generated_tokens=totals.num_generated_tokens + len(output.token_ids),
            num_prompt_tokens=totals.num_prompt_tokens + (output.num_prompt_tokens if ended else 0),
            num_cached_tokens=totals.num_cached_tokens + (output.num_cached_tokens if ended else 0),
        )
