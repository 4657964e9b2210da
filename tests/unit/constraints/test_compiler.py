from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from interlock.constraints.cache import CachedGrammar, GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.base import CompiledGrammar
from interlock.constraints.providers.fake import FakeProvider
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.core.constraint import LoweredConstraint
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

WAIT_S = 10.0
FAKE = FakeProvider(byte_tokenizer())


def constraint(key: str, provider: str = "fake") -> LoweredConstraint:
    return LoweredConstraint(provider=provider, grammar=key, key=key)


class SteppedProvider:
    """Compiles when told to. ``fail-...`` is refused, ``crash`` raises."""

    name = "fake"

    def __init__(self) -> None:
        self.started: list[str] = []
        self.arrived = threading.Semaphore(0)
        self.gates: dict[str, threading.Event] = {}

    def compile(self, grammar: str) -> CompiledGrammar:
        self.started.append(grammar)
        self.arrived.release()
        gate = self.gates.get(grammar)
        if gate is not None:
            assert gate.wait(WAIT_S)
        if grammar.startswith("fail"):
            raise InterlockError("invalid_grammar", grammar)
        if grammar == "crash":
            raise RuntimeError("boom")
        return FAKE.compile("[[1]]")

    def hold(self, grammar: str) -> Callable[[], None]:
        self.gates[grammar] = threading.Event()
        return self.gates[grammar].set


def compiler(provider: SteppedProvider, *, threads: int = 1, deadline_s: float = WAIT_S) -> GrammarCompiler:
    return GrammarCompiler(provider, GrammarCache(1_000_000), threads=threads, deadline_s=deadline_s)


def refusal(future: Future[CompiledGrammar]) -> str:
    error = future.exception(WAIT_S)
    assert isinstance(error, InterlockError)
    return error.code


def test_equal_constraints_share_one_compile() -> None:
    provider = SteppedProvider()
    release = provider.hold("a")
    under_test = compiler(provider)
    first, second = under_test.prepare(constraint("a")), under_test.prepare(constraint("a"))
    release()
    assert first.result(WAIT_S) is second.result(WAIT_S)
    assert under_test.prepare(constraint("a")).result(0) is first.result(0)
    assert provider.started == ["a"]
    stats = under_test.stats()
    assert (stats.num_compiles, stats.num_hits) == (1, 1)
    assert stats.cache_bytes > 0


def test_a_future_cannot_be_cancelled() -> None:
    provider = SteppedProvider()
    release = provider.hold("a")
    future = compiler(provider).prepare(constraint("a"))
    assert not future.cancel()
    release()
    assert future.result(WAIT_S)


def test_refusals_are_remembered_and_crashes_are_not() -> None:
    provider = SteppedProvider()
    under_test = compiler(provider)
    for _ in range(2):
        assert refusal(under_test.prepare(constraint("fail"))) == "invalid_grammar"
        assert refusal(under_test.prepare(constraint("crash"))) == "compile_failed"
    assert provider.started == ["fail", "crash", "crash"]


def test_a_forgotten_grammar_is_compiled_again_and_its_users_keep_theirs() -> None:
    provider = SteppedProvider()
    grammars = compiler(provider)
    first = grammars.prepare(constraint("a")).result(WAIT_S)
    held = first.matcher()
    grammars.forget("a")
    grammars.forget("never heard of")

    assert grammars.prepare(constraint("a")).result(WAIT_S) is not first
    assert provider.started == ["a", "a"]
    held.accept(1)


def test_a_grammar_that_overflows_a_usual_stack_is_compiled_or_refused() -> None:
    """The engine recurses over three thousand keys in order; on 8 MiB that ends the process."""
    schema = {
        "properties": {f"p{number}": {} for number in range(3000)},
        "required": ["p900", "p1800", "p2700"],  # more optional ones in a row are refused before
    }
    compiled = compile_schema(schema, SchemaOptions(), json_syntax(",", ":", flexible=False), "j")
    assert not compiled.problems
    compiling = GrammarCompiler(
        LLGuidanceProvider(byte_tokenizer()), GrammarCache(1 << 20), threads=1, deadline_s=60.0
    )
    grammar = f"start: {compiled.start}\n{compiled.lark}"
    future = compiling.prepare(LoweredConstraint(provider="llguidance", grammar=grammar, key="many keys"))
    assert future.exception(timeout=60.0) is None or isinstance(future.exception(), InterlockError)
    compiling.close()


def test_a_foreign_provider_is_refused() -> None:
    assert refusal(compiler(SteppedProvider()).prepare(constraint("a", "other"))) == "unsupported_parameter"


def test_compiles_beyond_the_threads_wait() -> None:
    provider = SteppedProvider()
    release = provider.hold("a")
    under_test = compiler(provider)
    first = under_test.prepare(constraint("a"))
    second = under_test.prepare(constraint("b"))
    assert provider.arrived.acquire(timeout=WAIT_S)
    assert provider.started == ["a"]
    release()
    assert first.result(WAIT_S)
    assert second.result(WAIT_S)


def test_a_compile_past_its_deadline_fails_and_blocks_only_its_thread() -> None:
    provider = SteppedProvider()
    release = provider.hold("slow")
    under_test = compiler(provider, threads=2, deadline_s=0.05)
    assert refusal(under_test.prepare(constraint("slow"))) == "constraint_too_complex"
    assert under_test.stats().num_abandoned == 1
    assert under_test.prepare(constraint("b")).result(WAIT_S)
    assert refusal(under_test.prepare(constraint("slow"))) == "constraint_too_complex"  # remembered
    release()


def test_nothing_is_compiled_while_abandoned_compiles_hold_all_threads() -> None:
    provider = SteppedProvider()
    release = provider.hold("slow")
    under_test = compiler(provider, deadline_s=0.05)
    slow = under_test.prepare(constraint("slow"))
    waiting = under_test.prepare(constraint("b"))
    assert refusal(slow) == "constraint_too_complex"
    assert refusal(waiting) == "overloaded"
    assert refusal(under_test.prepare(constraint("c"))) == "overloaded"
    release()
    assert provider.started == ["slow"]


def test_close_fails_what_waits_and_what_comes() -> None:
    provider = SteppedProvider()
    release = provider.hold("a")
    under_test = compiler(provider)
    running, waiting = under_test.prepare(constraint("a")), under_test.prepare(constraint("b"))
    under_test.close()
    under_test.close()
    assert refusal(waiting) == "shutting_down"
    assert refusal(under_test.prepare(constraint("c"))) == "shutting_down"
    release()
    assert running.result(WAIT_S)


def grammar(num_answers: int = 1) -> CompiledGrammar:
    return FAKE.compile(str([[index] for index in range(num_answers)]))


def test_the_cache_drops_the_least_recently_used() -> None:
    cache = GrammarCache(max_bytes=2 * grammar().num_bytes)
    for key in "ab":
        cache.put(key, grammar())
    assert cache.get("a") is not None
    cache.put("c", grammar())
    assert [key for key in "abc" if cache.get(key) is None] == ["b"]
    assert cache.num_evictions == 1
    assert cache.num_bytes == 2 * grammar().num_bytes


def test_the_cache_keeps_what_is_in_use() -> None:
    cache = GrammarCache(max_bytes=grammar().num_bytes)
    matcher = cache.put("a", grammar()).matcher()
    cache.put("b", grammar())
    assert isinstance(cache.get("a"), CachedGrammar)
    assert matcher.error is None
    del matcher
    gc.collect()
    cache.put("c", grammar())
    assert [key for key in "abc" if cache.get(key) is None] == ["a", "b"]


def test_refusals_are_bounded() -> None:
    cache = GrammarCache(max_bytes=0)
    for index in range(2_000):
        cache.put_refusal(str(index), InterlockError("invalid_grammar", "no"))
    assert cache.get("0") is None
    assert isinstance(cache.get("1999"), InterlockError)


@pytest.mark.parametrize("num_threads", [8])
def test_many_threads_may_prepare_at_once(num_threads: int) -> None:
    provider = SteppedProvider()
    under_test = compiler(provider, threads=2)
    barrier = threading.Barrier(num_threads)
    results: list[Future[CompiledGrammar]] = []

    def prepare() -> None:
        barrier.wait(WAIT_S)
        results.extend(under_test.prepare(constraint(str(index % 4))) for index in range(40))

    workers = [threading.Thread(target=prepare) for _ in range(num_threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(WAIT_S)
    assert len(results) == 40 * num_threads
    assert all(future.result(WAIT_S) for future in results)
    assert sorted(provider.started) == ["0", "1", "2", "3"]
