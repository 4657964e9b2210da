"""Dead ends that no guard foresees: the request goes back, is told nothing of it, and ends with a valid value; nothing else about it
changes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine import backtracking
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.base import RunnerCapabilities
from interlock.runners.fake import FakeRunner, UniformLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
DIGIT = {"type": "integer", "minimum": 1, "maximum": 9}


def positions(*items: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "array", "uniqueItems": True, "prefixItems": list(items), "items": False, "minItems": len(items), **more
    }  # fmt: skip


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


CONTAINS = positions(DIGIT, {"enum": [1, 2]}, {"enum": [1, 3]}, contains={"enum": [1, 2]}, minContains=2)
ALTERNATIVES = {
    "anyOf": [
        positions({"const": "a"}, DIGIT, DIGIT, {"const": 5}),
        positions({"const": "b"}, DIGIT, DIGIT, {"const": 6}, {"enum": [6, 7]}),
    ]
}
SCHEMAS = {
    "contains": CONTAINS,
    "alternatives": ALTERNATIVES,
    "nested": record(rows={"type": "array", "items": ALTERNATIVES, "minItems": 2, "maxItems": 2}, last=CONTAINS),
    "strings": {
        "anyOf": [
            positions({"const": 1}, *[{"type": "string", "pattern": "^[abc]$"}] * 2, {"const": "a"}),
            positions({"const": 2}, *[{"type": "string", "pattern": "^[abc]$"}] * 2, {"const": "b"}),
        ]
    },
    "many positions": positions(
        *[{"type": "integer", "minimum": 1, "maximum": 90}] * 66, {"const": 5}, {"enum": [5, 6]}
    ),
}  # fmt: skip
CONSTRAINTS = {
    name: lower(ConstraintSpec(root=JsonValue(json.dumps(schema))), TOKENIZER.special_tokens)
    for name, schema in SCHEMAS.items()
}


def request(name: str, seed: int, **fields: Any) -> EngineRequest:
    return EngineRequest(
        request_id=f"{name}/{seed}",
        prompt_ids=tuple(TOKENIZER.encode("[5, 6, 1] ")),
        sampling=SamplingParams(temperature=1.0, seed=seed, **fields),
        max_tokens=600,
        stop_ids=VOCABULARY.stop_ids,
        constraint=CONSTRAINTS[name],
    )


def requests() -> list[EngineRequest]:
    return [
        request(name, seed)
        for name in SCHEMAS
        for seed in range({"many positions": 1, "contains": 5}.get(name, 3))
    ]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))


Told = dict[str, list[EngineOutput]]


def run(
    compiler: GrammarCompiler,
    made: Sequence[EngineRequest],
    *,
    slots: int = 1,
    capabilities: RunnerCapabilities | None = None,
    preempt_every: int = 0,
    **config: Any,
) -> tuple[Told, EngineCore]:
    for one in made:
        assert one.constraint is not None
        compiler.prepare(one.constraint).result(60)
    runner = FakeRunner(
        VOCABULARY.size,
        logits=UniformLogits(VOCABULARY.size, 3),
        slots=slots,
        max_batch_tokens=128,
        context_tokens=1000,
        capabilities=capabilities,
    )
    settings = EngineConfig(model=Path("none"), mask_threads=1, max_waiting=len(made), **config)
    speculator = create_speculator(settings, runner.info, TOKENIZER, lambda *_: runner)
    core = EngineCore(runner, compiler, VOCABULARY, settings, speculator=speculator)
    for one in made:
        core.submit(one)
    told: Told = defaultdict(list)
    step = 0
    while not core.is_empty:
        step += 1
        if preempt_every and step % preempt_every == 0:
            for one in made:
                core.preempt(one.request_id)
        for output in core.step():
            told[output.request_id].append(output)
        core.check()
    return told, core


def texts(told: Told) -> dict[str, tuple[str, str | None]]:
    return {
        name: (
            TOKENIZER.decode([one for output in outputs for one in output.token_ids]),
            outputs[-1].finish_reason,
        )
        for name, outputs in told.items()
    }


@pytest.fixture(scope="module")
def expected(compiler: GrammarCompiler) -> Told:
    return run(compiler, requests(), forced_tokens=False, prefix_cache=False)[0]


def test_every_value_is_valid_although_each_kind_runs_into_dead_ends(expected: Told) -> None:
    num_backtracks: dict[str, int] = defaultdict(int)
    for name, (text, end) in texts(expected).items():
        kind = name.partition("/")[0]
        assert end == "stop", (name, text, expected[name][-1].failure)
        jsonschema.validate(json.loads(text), SCHEMAS[kind])
        timings = expected[name][-1].timings
        assert timings is not None
        num_backtracks[kind] += timings.num_backtracked
    assert all(num_backtracks[kind] for kind in SCHEMAS), num_backtracks


SPECULATIVE = SpeculativeConfig(methods=("ngram",), adaptive=False, prompt_lookup_min=1)


@pytest.mark.parametrize(
    "options",
    [
        {"speculative": SPECULATIVE},
        {"slots": 8, "forced_tokens": False, "speculative": SPECULATIVE},
        {"slots": 8, "preempt_every": 7},
        {"capabilities": RunnerCapabilities()},
    ],
    ids=["drafts", "company", "preemption", "a cache that cannot be cut"],
)
def test_company_drafts_preemption_and_caches_change_nothing(
    compiler: GrammarCompiler, expected: Told, options: dict[str, Any]
) -> None:
    made = [one for one in requests() if not one.request_id.startswith("many")]
    told, core = run(compiler, made, **options)
    assert texts(told) == {one.request_id: texts(expected)[one.request_id] for one in made}
    assert core.stats().num_backtracked > 0


def test_text_that_may_be_taken_back_comes_whole_and_a_new_worker_goes_on_in_front_of_it(
    compiler: GrammarCompiler, expected: Told
) -> None:
    name, outputs = next(
        (name, outputs)
        for name, outputs in expected.items()
        if name.startswith("nested") and outputs[-1].timings and outputs[-1].timings.num_backtracked
    )
    delivered: list[int] = []
    held = [output for output in outputs if len(output.token_ids) > 1]
    assert held, "nothing was held"
    for output in outputs[:-1]:
        delivered += output.token_ids
        if output is held[0]:
            break
    made = next(one for one in requests() if one.request_id == name)
    told, _ = run(compiler, [replace(made, resume_ids=tuple(delivered))])
    assert TOKENIZER.decode(delivered) + texts(told)[name][0] == texts(expected)[name][0]


def test_arrays_that_cannot_run_out_are_told_token_by_token(compiler: GrammarCompiler) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "string", "maxLength": 3}, "minItems": 5}
    constraint = lower(ConstraintSpec(root=JsonValue(json.dumps(schema))), TOKENIZER.special_tokens)
    told, _ = run(compiler, [replace(request("contains", 1), constraint=constraint)], forced_tokens=False)
    (outputs,) = told.values()
    assert {len(output.token_ids) for output in outputs[:-1]} == {1}


def test_it_ends_with_an_error_behind_too_many_dead_ends(
    compiler: GrammarCompiler, expected: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(
        name
        for name, outputs in expected.items()
        if outputs[-1].timings and outputs[-1].timings.num_backtracked
    )
    monkeypatch.setattr(backtracking, "MOST_BACKTRACKS", 0)
    told, _ = run(compiler, [one for one in requests() if one.request_id == name])
    assert told[name][-1].failure is not None
    assert told[name][-1].failure.code == "matcher_failed"
