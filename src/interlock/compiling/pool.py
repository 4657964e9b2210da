"""The compile pool: helper processes that lower constraints under limits of time and memory.

Lowering is pure Python and would stall every stream of this process; a native compile cannot be stopped. In a
process of their own both can be killed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from interlock import log
from interlock.compiling.helper_process import HelperDiedError, HelperProcess, HelperTimeoutError
from interlock.compiling.messages import (
    Answer,
    AnyJob,
    Check,
    Checked,
    Job,
    Lowered,
    Refused,
    Setup,
    Validate,
    Validated,
)
from interlock.compiling.results import ResultCache
from interlock.config import CompileConfig, raised_by
from interlock.constraints import walk
from interlock.constraints.documents import NO_DOCUMENTS
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint, Lowering
from interlock.errors import InterlockError
from interlock.metrics import Metrics

# Writing this many as JSON takes about half a millisecond.
_LARGE_SPEC_CHARS = 100_000

# A busy machine must not decide whether a schema is refused, but somebody waits for the answer.
_WALL_PER_CPU = 4.0

_ABANDONED_S = 1.0
"""A job that nobody waits for any more may go on for so long, about what it costs to start a helper again: most jobs end
by then, and who asks again gets the result."""

_log = log.get(__name__)


@dataclass(slots=True)
class _Shared:
    """A job and how many callers wait for it."""

    task: asyncio.Task[LoweredConstraint]
    num_callers: int = 0

    def end_if_abandoned(self) -> None:
        """End the job where nobody waits for it; ends the helper that works on it."""
        if self.num_callers == 0:
            self.task.cancel()


class CompilePool:
    """One event loop owns it. special_tokens: spelling to id of the model's vocabulary."""

    def __init__(
        self, config: CompileConfig, special_tokens: Mapping[str, int], metrics: Metrics | None = None
    ) -> None:
        self._config = config
        self._setup = Setup(
            dict(special_tokens),
            config.memory_bytes,
            config.timeout_s,
            dict(config.documents),
            config.guards,
            config.schema_limits,
        )
        self._metrics = metrics
        self._results = ResultCache(config.cache_entries, config.cache_bytes)
        self._in_flight: dict[str, _Shared] = {}
        self._idle: asyncio.LifoQueue[HelperProcess] = asyncio.LifoQueue()
        self._helpers: list[HelperProcess] = []

    @property
    def helper_pids(self) -> tuple[int, ...]:
        """Process ids of the helpers that run now."""
        return tuple(helper.pid for helper in self._helpers if helper.pid is not None)

    async def start(self) -> None:
        """Start the helpers and return when all are ready. Raises ``InterlockError("compile_failed")``."""
        self._helpers = [HelperProcess(self._setup) for _ in range(self._config.helpers)]
        try:
            await asyncio.gather(*(helper.start() for helper in self._helpers))
        except HelperDiedError as error:
            await self.stop()
            raise InterlockError("compile_failed", f"the compile pool did not start: {error}") from None
        for helper in self._helpers:
            self._idle.put_nowait(helper)

    async def stop(self) -> None:
        """Kill the helpers; whoever waits gets ``shutting_down``. Idempotent."""
        tasks = [shared.task for shared in self._in_flight.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        helpers, self._helpers = self._helpers, []
        await asyncio.gather(*(helper.kill() for helper in helpers))

    async def lower(self, spec: ConstraintSpec, documents: Mapping[str, str] = NO_DOCUMENTS) -> Lowering:
        """The lowered spec. documents: more of them, for this call alone, whose result is not kept. Equal specs share
        one job and its result, refusals too; the job is ended soon after the last of its callers was cancelled. Raises the
        ``InterlockError`` a client should see."""
        num_chars = walk.num_chars(spec.root)
        if num_chars > walk.MAX_SPEC_CHARS:  # before anything is done with so much text on this loop
            raise InterlockError(
                "constraint_too_complex",
                f"the constraint has {num_chars} characters; at most {walk.MAX_SPEC_CHARS} are supported",
            )
        text = spec.to_json() if num_chars < _LARGE_SPEC_CHARS else await asyncio.to_thread(spec.to_json)
        if documents:
            answer = await self._run(Job(text, dict(documents)))
            if isinstance(answer, Lowered):
                return Lowering(constraint=answer.constraint)
            raise _error(answer)
        key = hashlib.sha256(text.encode()).hexdigest()
        found = self._results.get(key)
        if found is None:
            return Lowering(constraint=await self._shared(key, text))
        self._count("cached")
        if isinstance(found, InterlockError):
            raise found
        return Lowering(constraint=found, is_cached=True)

    async def check(
        self, value: JsonValue, instances: Sequence[str] = (), documents: Mapping[str, str] = NO_DOCUMENTS
    ) -> dict[str, Any]:
        """``schema_report`` of a value. documents: schemas that references may name beside the server's, by URI, as
        JSON text. Raises the ``InterlockError`` of a job that was ended."""
        answer = await self._run(Check(ConstraintSpec(root=value).to_json(), tuple(instances), dict(documents)))
        if isinstance(answer, Checked):
            report: dict[str, Any] = msgspec.json.decode(answer.report)
            return report
        raise _error(answer)

    async def validate(self, pairs: Sequence[tuple[str, str]]) -> tuple[bool | None, ...]:
        """For each schema and document, both JSON text: is it valid? ``None``: the validator cannot tell."""
        answer = await self._run(Validate(tuple(pairs)))
        return answer.valid if isinstance(answer, Validated) else (None,) * len(pairs)

    async def _shared(self, key: str, text: str) -> LoweredConstraint:
        shared = self._in_flight.get(key)
        if shared is None:
            if not self._helpers:
                raise InterlockError("shutting_down", "the compile pool is not running")
            shared = self._in_flight[key] = _Shared(asyncio.create_task(self._compute(key, text)))
            shared.task.add_done_callback(lambda done: self._forget(key, done))
        shared.num_callers += 1
        try:
            return await asyncio.shield(shared.task)
        except asyncio.CancelledError:
            if shared.task.cancelled():
                raise InterlockError("shutting_down", "the server is stopping") from None
            raise
        finally:
            shared.num_callers -= 1
            if shared.num_callers == 0 and not shared.task.done():
                asyncio.get_running_loop().call_later(_ABANDONED_S, shared.end_if_abandoned)

    def _forget(self, key: str, task: asyncio.Task[LoweredConstraint]) -> None:
        del self._in_flight[key]
        if not task.cancelled():
            task.exception()  # retrieved, also when every caller has gone

    async def _compute(self, key: str, text: str) -> LoweredConstraint:
        return self._settled(key, await self._run(Job(text)))

    async def _run(self, job: AnyJob) -> Answer | InterlockError:
        helper = await self._idle.get()
        try:
            return await self._answer(helper, job)
        finally:
            self._idle.put_nowait(helper)

    async def _answer(self, helper: HelperProcess, job: AnyJob) -> Answer | InterlockError:
        try:
            await helper.ensure_started()
        except HelperDiedError as error:
            return InterlockError("compile_failed", f"a compile helper did not start: {error}")
        try:
            return await helper.ask(job, self._config.timeout_s * _WALL_PER_CPU)
        except HelperTimeoutError:
            return InterlockError(
                "constraint_too_complex",
                f"the constraint did not compile within {self._config.timeout_s:g} s"
                f" ({raised_by(CompileConfig, 'timeout_s')})",
            )
        except HelperDiedError as error:
            _log.warning("a compile helper died: %s", error)
            return InterlockError(
                "constraint_too_complex", "the constraint exceeds the compiler's memory or stack"
            )

    def _settled(self, key: str, answer: Answer | InterlockError) -> LoweredConstraint:
        if isinstance(answer, Lowered | Refused) and self._metrics is not None:
            self._metrics.lowering_s.observe(answer.seconds)
        if isinstance(answer, Lowered):
            self._results.put(key, answer.constraint)
            self._count("lowered")
            return answer.constraint
        error = _error(answer)
        self._count("refused" if error.entry.status == 400 else "failed")
        if error.entry.status == 400:
            self._results.put(key, error)
        raise error

    def _count(self, result: str) -> None:
        if self._metrics is not None:
            self._metrics.lowering.labels(result).inc()


def _error(answer: Answer | InterlockError) -> InterlockError:
    """Why the answer is not the one that was asked for."""
    if isinstance(answer, Refused):
        return answer.error()
    return (
        answer
        if isinstance(answer, InterlockError)
        else InterlockError("compile_failed", "an answer to another job")
    )
