from __future__ import annotations

import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.fake import FakeProvider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.runners.base import RunnerCapabilities
from interlock.runners.fake import FakeRunner, Faults, LogitsSource, WantedLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
STOP_ID = TOKENIZER.vocabulary.stop_ids[0]
GREEDY = SamplingParams(temperature=0.0)


class GatedProvider(FakeProvider):
    """Compiles once ``gate`` is set."""

    def __init__(self) -> None:
        super().__init__(TOKENIZER)
        self.gate = threading.Event()
        self.gate.set()

    def compile(self, grammar: str) -> Any:
        assert self.gate.wait(10)
        return super().compile(grammar)


class Bench:
    """A core over the fake runner and the fake grammar engine, stepped by hand. ``now`` is its clock."""

    def __init__(
        self,
        *,
        logits: LogitsSource | None = None,
        faults: Faults | None = None,
        slots: int = 4,
        budget: int = 16,
        context_tokens: int = 256,
        max_waiting: int = 16,
        copy_cost_tokens: int = 0,
        capabilities: RunnerCapabilities | None = None,
        **config: Any,
    ) -> None:
        self.runner = FakeRunner(
            TOKENIZER.vocabulary.size,
            logits=logits,
            faults=faults,
            slots=slots,
            max_batch_tokens=budget,
            context_tokens=context_tokens,
            copy_cost_tokens=copy_cost_tokens,
            capabilities=capabilities,
        )
        self.provider = GatedProvider()
        self.compiler = GrammarCompiler(self.provider, GrammarCache(1 << 20))
        self.woken = threading.Event()
        self.now = 0.0
        self.core = EngineCore(
            self.runner,
            self.compiler,
            TOKENIZER.vocabulary,
            EngineConfig(model=Path("none"), runner="fake", max_waiting=max_waiting, **config),
            wake=self.woken.set,
            clock=lambda: self.now,
        )
        self.outputs: dict[str, list[EngineOutput]] = defaultdict(list)
        self._names = itertools.count()

    def submit(self, prompt: str | Sequence[int] = "hello", **fields: Any) -> str:
        """Submit a request, greedy and of 8 tokens unless ``fields`` say otherwise; its id.
        ``answers``: the only legal answers."""
        answers: Iterable[Sequence[Any] | str] | None = fields.pop("answers", None)
        name = fields.pop("request_id", None) or f"r{next(self._names)}"
        if answers is not None:
            fields["constraint"] = one_of(answers)
        ids = tuple(TOKENIZER.encode(prompt)) if isinstance(prompt, str) else tuple(prompt)
        settings = {"sampling": GREEDY, "max_tokens": 8, "stop_ids": (STOP_ID,)} | fields
        self.core.submit(EngineRequest(request_id=name, prompt_ids=ids, **settings))
        return name

    def step(self) -> list[EngineOutput]:
        outputs = self.core.step()
        self.check()
        for output in outputs:
            assert not self.finish(output.request_id), "an output after the last one"
            self.outputs[output.request_id].append(output)
        return outputs

    def check(self) -> None:
        """The integrity checks, and that every cache holds what it is taken to hold."""
        self.core.check()
        for slot in self.core._scheduler._kv._slots:
            known = slot.left if slot.holder is None else slot.holder.token_ids[: slot.num_tokens]
            assert list(self.runner.tokens(slot.index)[: slot.num_tokens]) == known

    def run(self) -> None:
        """Step until every request has ended."""
        while not self.core.is_empty:
            if not self.core.has_work:
                assert self.woken.wait(10)
            self.woken.clear()
            self.step()

    def wait_for_grammar(self) -> None:
        """Until a compile has ended."""
        assert self.woken.wait(10)
        self.woken.clear()

    def ids(self, name: str) -> list[int]:
        return [token_id for output in self.outputs[name] for token_id in output.token_ids]

    def text(self, name: str) -> str:
        return TOKENIZER.decode(self.ids(name))

    def finish(self, name: str) -> str | None:
        """The finish reason, and the code of the failure if there is one."""
        if not self.outputs[name] or self.outputs[name][-1].finish_reason is None:
            return None
        last = self.outputs[name][-1]
        return f"error {last.failure.code}" if last.failure else last.finish_reason


def one_of(answers: Iterable[Sequence[Any] | str]) -> LoweredConstraint:
    lists = [list(answer.encode()) if isinstance(answer, str) else list(answer) for answer in answers]
    grammar = json.dumps(lists)
    return LoweredConstraint(provider="fake", grammar=grammar, key=grammar)


def saying(text: str) -> LogitsSource:
    """Logits of a model that says ``text`` over and over after a prompt that ends with ``>``."""
    ids = TOKENIZER.encode(text)

    def want(prefix: Sequence[int]) -> dict[int, float]:
        start = max(i for i, token_id in enumerate(prefix) if token_id == ord(">")) + 1
        return {ids[(len(prefix) - start) % len(ids)]: 1.0}

    return WantedLogits(TOKENIZER.vocabulary.size, want)


@pytest.fixture
def bench() -> Callable[..., Bench]:
    return Bench


@pytest.fixture
def make_constraint() -> Callable[..., LoweredConstraint]:
    return one_of


@pytest.fixture
def says() -> Callable[[str], LogitsSource]:
    return saying
