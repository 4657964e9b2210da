"""A search for an ending holds up the sequence that needs it, and nobody else."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.engine import EngineRequest, LengthClosing
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.runners.fake import FakeRunner, UniformLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "boolean"} for name in ("alpha", "beta", "gamma", "delta", "epsilon")},
    "additionalProperties": {"type": "array", "items": {"type": "object"}},
}
PROVIDER = LLGuidanceProvider(TOKENIZER)
DOCUMENT = EngineRequest(
    request_id="document",
    prompt_ids=(1, 2, 3),
    sampling=SamplingParams(temperature=1.0, seed=4),
    max_tokens=60,
    stop_ids=VOCABULARY.stop_ids,
    constraint=lower(ConstraintSpec(root=JsonValue(json.dumps(SCHEMA))), TOKENIZER.special_tokens),
    closing=LengthClosing(),
)
FREE = EngineRequest(
    request_id="free",
    prompt_ids=(4, 5),
    sampling=SamplingParams(temperature=1.0, seed=1),
    max_tokens=100,
    stop_ids=(),
)


class Setup:
    """A core over two slots. From search number ``first_held`` on each search waits for ``gate``; ``failing`` ones raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first_held: int, *, is_failing: bool = False) -> None:
        self.compiler = GrammarCompiler(PROVIDER, GrammarCache(1 << 26))
        self.gate, self.is_waiting = threading.Event(), threading.Event()
        self.num_searches = 0
        search = self.compiler.endings.search
        find = search.find

        def held(*arguments: Any) -> Any:
            self.num_searches += 1
            if self.num_searches > first_held:
                self.is_waiting.set()
                assert self.gate.wait(60)
                if is_failing:
                    raise ValueError("broken")
            return find(*arguments)

        monkeypatch.setattr(search, "find", held)
        logits = UniformLogits(VOCABULARY.size, 0)
        runner = FakeRunner(VOCABULARY.size, logits=logits, slots=2, max_batch_tokens=64, context_tokens=200)
        config = EngineConfig(model=Path("none"), mask_threads=1)
        self.core = EngineCore(runner, self.compiler, VOCABULARY, config)
        self.token_ids: dict[str, list[int]] = defaultdict(list)
        self.ends: dict[str, str] = {}
        constraint = DOCUMENT.constraint
        assert constraint is not None
        self.compiler.prepare(constraint).result(60)

    def submit(self) -> None:
        self.core.submit(DOCUMENT)
        self.core.submit(FREE)

    def run(self, until: Callable[[], bool]) -> None:
        for _ in range(20_000):
            if until():
                return
            for output in self.core.step():
                self.token_ids[output.request_id] += output.token_ids
                if output.finish_reason is not None:
                    failure = output.failure
                    self.ends[output.request_id] = output.finish_reason if failure is None else failure.code
            self.core.check()
        pytest.fail("it takes no end")


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> Setup:
    setup = Setup(monkeypatch, first_held=1_000)
    setup.submit()
    setup.run(lambda: setup.core.is_empty)
    assert setup.num_searches > 2
    return setup


def preempt(setup: Setup) -> None:
    setup.core.preempt("document")


def pause(setup: Setup) -> None:
    setup.core.pause(["document"])
    setup.core.step()
    setup.core.unpause(["document"])


MEANWHILE: dict[str, Callable[[Setup], None]] = {
    "nothing": lambda _: None,
    "preempted": preempt,
    "paused": pause,
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("first_held", [0, 1, 2])
def test_others_go_on_and_it_says_the_same(
    monkeypatch: pytest.MonkeyPatch, expected: Setup, first_held: int, meanwhile: str
) -> None:
    setup = Setup(monkeypatch, first_held)
    setup.submit()
    setup.run(lambda: setup.is_waiting.is_set() and "free" in setup.ends)
    assert setup.token_ids["free"] == expected.token_ids["free"]
    assert "document" not in setup.ends
    MEANWHILE[meanwhile](setup)
    a_few_steps = iter(range(5))
    setup.run(lambda: next(a_few_steps, None) is None)
    setup.gate.set()
    setup.run(lambda: setup.core.is_empty)
    assert setup.token_ids == expected.token_ids
    assert setup.ends == {"free": "length", "document": "length"}
    assert json.loads(TOKENIZER.decode(setup.token_ids["document"])) is not None


@pytest.mark.parametrize("first_held", [0, 1])
def test_one_that_leaves_meanwhile_is_gone_at_once(
    monkeypatch: pytest.MonkeyPatch, expected: Setup, first_held: int
) -> None:
    setup = Setup(monkeypatch, first_held)
    setup.submit()
    setup.run(setup.is_waiting.is_set)
    setup.core.abort("document")
    setup.run(lambda: setup.core.is_empty)
    setup.gate.set()
    assert setup.ends == {"document": "abort", "free": "length"}
    assert setup.token_ids["free"] == expected.token_ids["free"]


@pytest.mark.parametrize("first_held", [0, 1])
def test_a_search_that_breaks_ends_its_request_alone(
    monkeypatch: pytest.MonkeyPatch, expected: Setup, first_held: int
) -> None:
    setup = Setup(monkeypatch, first_held, is_failing=True)
    setup.gate.set()
    setup.submit()
    setup.run(lambda: setup.core.is_empty)
    assert setup.ends == {"document": "matcher_failed", "free": "length"}
    assert setup.token_ids["free"] == expected.token_ids["free"]
