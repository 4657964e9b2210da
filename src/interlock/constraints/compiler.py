"""Compiling grammars beside the step: each grammar once, under a deadline, on a bounded number of threads."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from interlock import log
from interlock.constraints.cache import GrammarCache
from interlock.constraints.closing import Endings
from interlock.constraints.ending import EndingSearch
from interlock.constraints.providers.base import CompiledGrammar, Provider
from interlock.constraints.schema.guards.matcher import GuardedGrammar
from interlock.constraints.schema.guards.turn import GuardedTurn
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.constraint import LoweredConstraint
from interlock.errors import InterlockError

_log = log.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerStats:
    """Counters since the start, and what is held now."""

    num_compiles: int
    num_hits: int
    num_evictions: int
    num_abandoned: int
    cache_bytes: int


@dataclass(slots=True, eq=False)
class _Job:
    constraint: LoweredConstraint
    future: Future[CompiledGrammar]
    status: Literal["waiting", "running", "abandoned", "done"] = "waiting"


class GrammarCompiler:
    """Thread-safe. Native compiles cannot be stopped, so one that passes the deadline is abandoned: its request
    fails, its thread runs on and counts until it ends. With ``threads`` of those, nothing new is compiled.

    others: makes a provider of another name when a constraint asks for it. threads: compiles at once. deadline_s: seconds for one compile, waiting for a thread not included.
    """

    def __init__(
        self,
        provider: Provider,
        cache: GrammarCache,
        *,
        others: Mapping[str, Callable[[], Provider]] = MappingProxyType({}),
        threads: int = 1,
        deadline_s: float = 10.0,
    ) -> None:
        self._provider = provider
        self._others = {name: functools.cache(make) for name, make in others.items()}
        self._cache = cache
        self._threads = threads
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._in_flight: dict[str, _Job] = {}
        self._waiting: deque[_Job] = deque()
        self._num_running = 0
        self._num_abandoned = 0
        self._num_compiles = 0
        self._closed = False

    def forget(self, key: str) -> None:
        """A matcher of this grammar failed. Its copies share a lexer that may have spent its fuel for good, so
        the next request gets a grammar of its own."""
        self._cache.drop(key)

    def prepare(self, constraint: LoweredConstraint) -> Future[CompiledGrammar]:
        """The compiled grammar, or the ``InterlockError`` a client should see. Equal constraints share a
        compile; the future cannot be cancelled."""
        future: Future[CompiledGrammar] = Future()
        future.set_running_or_notify_cancel()
        if constraint.provider != self._provider.name and constraint.provider not in self._others:
            future.set_exception(
                InterlockError("unsupported_parameter", f"no grammar engine {constraint.provider!r} here")
            )
            return future
        with self._lock:  # a compile that ends between the two look-ups would be missed otherwise
            found = self._cache.get(constraint.key) or self._enqueue(_Job(constraint, future))
        if isinstance(found, Future):
            return found
        if isinstance(found, InterlockError):
            future.set_exception(found)
        else:
            future.set_result(found)
        return future

    @functools.cached_property
    def endings(self) -> Endings:
        """What finds ways to the end of grammars."""
        return Endings(EndingSearch(self._guard_vocabulary))

    def warm_up(self) -> None:
        """Build now what the first guarded grammar, and the first answer that is closed, would need: it takes the
        interpreter for some tenths of a second."""
        _ = self.endings

    def stats(self) -> CompilerStats:
        """A snapshot."""
        return CompilerStats(
            num_compiles=self._num_compiles,
            num_hits=self._cache.num_hits,
            num_evictions=self._cache.num_evictions,
            num_abandoned=self._num_abandoned,
            cache_bytes=self._cache.num_bytes,
        )

    def close(self) -> None:
        """Fail what waits and compile nothing more. Idempotent; running compiles end on their own."""
        with self._lock:
            self._closed = True
            waiting = self._take_waiting()
        if "endings" in vars(self):
            self.endings.close()
        _fail(waiting, InterlockError("shutting_down", "the server is stopping"))

    def _enqueue(self, job: _Job) -> Future[CompiledGrammar] | InterlockError:
        same = self._in_flight.get(job.constraint.key)
        if same is not None:
            return same.future
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        self._in_flight[job.constraint.key] = job
        self._waiting.append(job)
        self._start_waiting()
        return job.future

    def _refusal(self) -> InterlockError | None:
        if self._closed:
            return InterlockError("shutting_down", "the server is stopping")
        return _occupied() if self._num_abandoned >= self._threads else None

    def _start_waiting(self) -> None:
        while self._waiting and self._num_running < self._threads:
            job = self._waiting.popleft()
            job.status = "running"
            self._num_running += 1
            threading.Thread(target=self._run, args=(job,), name="grammar-compile", daemon=True).start()

    def _take_waiting(self) -> list[_Job]:
        taken, self._waiting = list(self._waiting), deque()
        for job in taken:
            del self._in_flight[job.constraint.key]
        return taken

    def _run(self, job: _Job) -> None:
        provider = self._provider_of(job.constraint)
        timer = threading.Timer(self._deadline_s, self._abandon, (job,))
        timer.daemon = True
        timer.start()
        result = provider if isinstance(provider, InterlockError) else self._compile(provider, job.constraint)
        timer.cancel()
        with self._lock:
            self._num_compiles += 1
            on_time = job.status == "running"
            job.status = "done"
            if on_time:
                self._num_running -= 1
                del self._in_flight[job.constraint.key]
            else:
                self._num_abandoned -= 1
            self._start_waiting()
        if not on_time:
            return
        if isinstance(result, InterlockError):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    def _provider_of(self, constraint: LoweredConstraint) -> Provider | InterlockError:
        """Made where it is first asked for, which may take longer than a compile."""
        other = self._others.get(constraint.provider)
        try:
            return self._provider if other is None else other()
        except InterlockError as error:
            return error

    def _compile(self, provider: Provider, constraint: LoweredConstraint) -> CompiledGrammar | InterlockError:
        try:
            grammar = provider.compile(constraint.grammar)
            return self._cache.put(constraint.key, self._guarded(grammar, constraint.guards))
        except InterlockError as error:
            self._cache.put_refusal(constraint.key, error)
            return error
        except Exception as error:  # noqa: BLE001 - the edge of a thread: every waiter gets an answer
            _log.exception("compiling a grammar failed")
            return InterlockError("compile_failed", f"compiling the grammar failed: {error}")

    def _guarded(self, grammar: CompiledGrammar, guards: str) -> CompiledGrammar:
        if not guards:
            return grammar
        return GuardedGrammar(grammar, GuardedTurn.from_json(guards), self._guard_vocabulary)

    @functools.cached_property
    def _guard_vocabulary(self) -> GuardVocabulary:
        return GuardVocabulary(self._provider.vocabulary)

    def _abandon(self, job: _Job) -> None:
        """The deadline passed while ``job`` ran."""
        error = InterlockError(
            "constraint_too_complex", f"the grammar did not compile within {self._deadline_s:g} s"
        )
        stuck: list[_Job] = []
        with self._lock:
            if job.status != "running":
                return
            job.status = "abandoned"
            self._num_running -= 1
            self._num_abandoned += 1
            del self._in_flight[job.constraint.key]
            if self._num_abandoned < self._threads:
                self._start_waiting()
            else:
                stuck = self._take_waiting()
        self._cache.put_refusal(job.constraint.key, error)
        _fail([job], error)
        _fail(stuck, _occupied())


def _fail(jobs: list[_Job], error: InterlockError) -> None:
    for job in jobs:
        job.future.set_exception(error)


def _occupied() -> InterlockError:
    return InterlockError("overloaded", "earlier grammars still occupy the compiler")
