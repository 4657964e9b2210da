"""The same tokens whatever the engine does to serve them: every way of guessing ahead, with company and alone, preempted or
not, with and without a prefix cache and states saved in the host's memory, in chunks of any size. The document of the schema runs
out of tokens and is closed.

The default run covers each pair of choices; ``--full-product`` runs all of them.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from interlock.config import EngineConfig, SpeculativeConfig, SpeculativeMethod
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EngineRequest, LengthClosing, ThinkingBudget
from interlock.core.output_format import TextFormat
from interlock.core.sampling import SamplingParams
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.runners.fake import FakeRunner, Prefix, UniformLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 5}, "unit": {"enum": ["celsius", "kelvin"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
)
TOOL = Tool(name="weather", parameters=SCHEMA)
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "seeded": SamplingParams(temperature=0.9, seed=7, top_p=0.95, frequency_penalty=0.2),
}
SLOTS = 8


def call(family_name: str, thinking: Any = "none") -> LoweredConstraint:
    """One required call, as a family writes it."""
    family = next(family for family in FAMILIES if family.name == family_name)
    tools = ToolContext(
        effective_tools=(TOOL,),
        callable_tools=(TOOL,),
        tool_choice=ToolChoice(mode="required"),
        parallel_tool_calls=False,
        constrained=True,
    )
    spec = constrain(family, tools=tools, output_format=TextFormat(), thinking=thinking)
    assert spec is not None
    return lower(spec, TOKENIZER.special_tokens)


REGEX = "start: /[a-z]{3,12}(, [a-z]{2,9}){1,3}/"
CONSTRAINTS: dict[str, LoweredConstraint | None] = {
    "free": None,
    "schema": lower(ConstraintSpec(root=JsonValue(schema=SCHEMA)), TOKENIZER.special_tokens),
    "call in JSON": call("qwen3"),
    "call in tags": call("qwen3_coder"),
    "call of several markers": call("deepseek_v3_1"),
    "regex": LoweredConstraint(provider="llguidance", grammar=REGEX, key=REGEX),
    "call after reasoning": call("qwen3", "open"),
}
KINDS = tuple(CONSTRAINTS)
DRAFTING: dict[str, tuple[SpeculativeMethod, ...]] = {
    "off": (),
    "forced": (),
    "ngram": ("ngram",),
    "skeleton": ("skeleton",),
    "draft model": ("draft_model",),
}


@dataclass(frozen=True)
class Case:
    """kind: who runs alone; ``None`` for all kinds together. every: it loses its slot after each
    so many of its outputs, 0 for never. saved: bytes of states that may be saved."""

    kind: str | None
    drafting: str
    every: int
    prefix_cache: bool
    saved: int
    budget: int
    sampling: str

    def __str__(self) -> str:
        cache = "cache" if self.prefix_cache else "no cache"
        cache += f"-{self.saved}"
        return f"{self.kind or 'together'}-{self.drafting}-{self.every}-{cache}-{self.budget}-{self.sampling}"


CHOICES: tuple[Sequence[Any], ...] = (
    (None, *KINDS),
    tuple(DRAFTING),
    (0, 1, 2, 5),
    (True, False),
    (0, 10_000, 1 << 20),
    (9, 32, 512),
    tuple(SAMPLINGS),
)


def pairwise_cover(choices: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows of the product in which any two choices of different columns meet: each row adds the most new pairs."""
    open_pairs = {
        (i, a, j, b)
        for (i, left), (j, right) in itertools.combinations(enumerate(choices), 2)
        for a in left
        for b in right
    }
    rows = list(itertools.product(*choices))
    while open_pairs:
        row = max(rows, key=lambda row: len(_pairs(row) & open_pairs))
        open_pairs -= _pairs(row)
        yield row


def _pairs(row: Sequence[Any]) -> set[tuple[int, Any, int, Any]]:
    return {(i, a, j, b) for (i, a), (j, b) in itertools.combinations(enumerate(row), 2)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        is_full = metafunc.config.getoption("--full-product")
        rows = itertools.product(*CHOICES) if is_full else pairwise_cover(CHOICES)
        metafunc.parametrize("case", [Case(*row) for row in rows], ids=str)


class Habits:
    """A model whose text repeats itself, so that guesses are right at times."""

    def __init__(self, seed: int) -> None:
        self._base = UniformLogits(VOCABULARY.size, seed)

    def row(self, prefix: Prefix) -> Any:
        values = self._base.row(prefix).copy()
        values[97 + (prefix.tokens[prefix.length - 1] * 7 + 3) % 9] += 5.0
        values[ord('"')] += 3.0
        return values


def request(kind: str, sampling: str) -> EngineRequest:
    thinking = ThinkingBudget(max_tokens=6, close_ids=tuple(TOKENIZER.encode("</think>")))
    return EngineRequest(
        request_id=kind,
        prompt_ids=tuple(TOKENIZER.encode(f'All: {{"city": "abc"}} {kind}')),
        sampling=SAMPLINGS[sampling],
        max_tokens=60 if kind != "schema" else 31,
        stop_ids=VOCABULARY.stop_ids,
        constraint=CONSTRAINTS[kind],
        closing=LengthClosing() if kind == "schema" else None,
        thinking=thinking if kind == "call after reasoning" else None,
    )


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    compiler = GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))
    for constraint in filter(None, CONSTRAINTS.values()):
        compiler.prepare(constraint).result(30)
    return compiler


def run(compiler: GrammarCompiler, case: Case) -> dict[str, Any]:
    """What each request got, and how it ended."""

    def runner(seed: int = 0) -> FakeRunner:
        return FakeRunner(
            VOCABULARY.size,
            logits=Habits(seed),
            slots=SLOTS if case.kind is None else 1,
            max_batch_tokens=case.budget,
            context_tokens=300,
        )

    methods = DRAFTING[case.drafting]
    speculative = SpeculativeConfig(
        methods=methods, num_speculative_tokens=7, model=Path("draft"), adaptive=False
    )
    config = EngineConfig(
        model=Path("none"),
        mask_threads=1,
        prefix_cache=case.prefix_cache,
        prompt_cache_bytes=case.saved,
        forced_tokens=case.drafting != "off",
        speculative=speculative if methods else None,
    )
    target = runner()
    speculator = create_speculator(config, target.info, TOKENIZER, lambda *_: runner(seed=1))
    core = EngineCore(target, compiler, VOCABULARY, config, speculator=speculator)
    kinds = [case.kind] if case.kind else [*KINDS]
    for kind in kinds:
        core.submit(request(kind, case.sampling))
    if case.kind is None:  # an eighth, so that no slot is free
        core.submit(replace(request("free", case.sampling), request_id="another"))
    outputs: dict[str, list[Any]] = defaultdict(lambda: [[], None, None])
    num_outputs: Counter[str] = Counter()
    while not core.is_empty:
        for output in core.step():
            told = outputs[output.request_id]
            told[0] += output.token_ids
            told[1:] = [output.finish_reason, output.is_accepting]
            assert output.failure is None
            num_outputs[output.request_id] += 1
            if case.every and num_outputs[output.request_id] % case.every == 0:
                core.preempt(output.request_id)
        core.check()
        assert core.stats().num_steps < 10_000
    stats = core.stats()
    if case.kind is None:
        assert bool(stats.num_preempted) == bool(case.every)
        assert bool(stats.num_forced_tokens) == (case.drafting != "off")
        assert bool(stats.num_draft_tokens) == bool(methods)
    return dict(outputs)


@pytest.fixture(scope="module")
def expected(compiler: GrammarCompiler) -> dict[str, dict[str, Any]]:
    """One at a time, one token at a time."""
    return {
        sampling: {kind: run(compiler, Case(kind, "off", 0, False, 0, 512, sampling))[kind] for kind in KINDS}
        for sampling in SAMPLINGS
    }


def test_what_is_expected_is_not_trivial(expected: dict[str, dict[str, Any]]):
    for outcomes in expected.values():
        texts = {kind: TOKENIZER.decode(ids) for kind, (ids, _, _) in outcomes.items()}
        assert len(set(texts.values())) == len(KINDS)
        assert all(len(text) >= 12 for text in texts.values())
        assert "</think>" in texts["call after reasoning"]
        assert json.loads(texts["schema"])["unit"] in ("celsius", "kelvin")
        assert outcomes["schema"][1:] == ["length", True]
    assert expected["greedy"] != expected["seeded"]


def test_the_same_tokens(compiler: GrammarCompiler, expected: dict[str, dict[str, Any]], case: Case):
    outcomes = run(compiler, case)
    outcomes.pop("another", None)
    wanted = expected[case.sampling]
    assert outcomes == (wanted if case.kind is None else {case.kind: wanted[case.kind]})
