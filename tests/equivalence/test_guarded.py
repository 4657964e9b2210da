"""Requests whose items must differ, from a model that wants them all alike: every value is valid, in any company, with
forced tokens and drafts or without."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema.guards import matcher as guard_matcher
from interlock.core.constraint import (
    ConstraintSpec,
    FreeText,
    JsonValue,
    LoweredConstraint,
    Marker,
    Node,
    Repeat,
    Sequence,
    Text,
)
from interlock.core.engine import EngineOutput, EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.runners.fake import FakeRunner, Prefix, UniformLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer(("<tool_call>", "</tool_call>", "<|im_end|>"))
VOCABULARY = TOKENIZER.vocabulary


def unique(items: Any, **bounds: int) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, **bounds}


def record(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


PAIR = record(x={"enum": ["red", "green", "blue"]}, y={"enum": [1, 12]})
ARRAYS: dict[str, dict[str, Any]] = {
    "strings": unique({"type": "string", "maxLength": 2}, minItems=3, maxItems=4),
    "few strings": unique({"type": "string", "pattern": "^[ab][cd]?$"}, minItems=6, maxItems=6),
    "integers": unique({"type": "integer", "minimum": 7, "maximum": 112}, minItems=8, maxItems=10),
    "product": unique(PAIR, minItems=6, maxItems=6),
    "nested": unique(unique({"type": "integer", "minimum": 1, "maximum": 40}, minItems=1, maxItems=2), minItems=4, maxItems=4),
    "records": unique(record(name={"type": "string", "maxLength": 1}, on={"type": "boolean"}), minItems=4, maxItems=4),
}  # fmt: skip


def call(schema: dict[str, Any]) -> Node:
    value = JsonValue(json.dumps(record(found=schema)), property_order="any")
    return Sequence((Marker("<tool_call>"), Text('{"arguments": '), value, Text("}"), Marker("</tool_call>")))


def in_calls(schema: dict[str, Any]) -> Node:
    """Free text, and several calls in one turn."""
    return Sequence((FreeText(()), Repeat(call(schema), 2, 2)))


def in_answer(schema: dict[str, Any]) -> Node:
    return JsonValue(json.dumps(schema))


WAYS: dict[str, Callable[[dict[str, Any]], Node]] = {"answer": in_answer, "calls": in_calls}


def lowered(node: Node) -> LoweredConstraint:
    return lower(ConstraintSpec(root=node), TOKENIZER.special_tokens)


CONSTRAINTS = {
    f"{name} {way}": lowered(make(schema)) for name, schema in ARRAYS.items() for way, make in WAYS.items()
}


class StubbornLogits:
    """A model that says again what it said last time in the same place, and likes to end things."""

    def __init__(self) -> None:
        self._base = UniformLogits(VOCABULARY.size, 3)

    def row(self, prefix: Prefix) -> np.ndarray[Any, np.dtype[np.float32]]:
        values = self._base.row(prefix).copy()
        text = list(prefix.tokens[: prefix.length])
        tail = text[-3:]
        for start in range(len(text) - 4, -1, -1):
            if text[start : start + 3] == tail:
                values[text[start + 3]] += 6
                break
        for liked in b'"]},</':
            values[liked] += 2
        for token_id in TOKENIZER.special_tokens.values():
            values[token_id] += 3
        return values


def requests() -> list[EngineRequest]:
    prompt = tuple(TOKENIZER.encode('["a", "a", "a"] [1, 1, 1] red red red '))
    samplings = (SamplingParams(temperature=0.0), SamplingParams(temperature=1.0, seed=8))
    return [
        EngineRequest(
            request_id=f"{name} {number}",
            prompt_ids=prompt,
            sampling=sampling,
            max_tokens=500,
            stop_ids=VOCABULARY.stop_ids,
            constraint=constraint,
        )
        for name, constraint in CONSTRAINTS.items()
        for number, sampling in enumerate(samplings)
        if number == ("calls" in name)
    ]


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))


Told = dict[str, tuple[str, str]]


def run(
    compiler: GrammarCompiler, made: list[EngineRequest], *, slots: int = 8, **config: Any
) -> tuple[Told, EngineCore]:
    """Text and end of each request."""
    for request in made:
        assert request.constraint is not None
        compiler.prepare(request.constraint).result(30)
    runner = FakeRunner(
        VOCABULARY.size, logits=StubbornLogits(), slots=slots, max_batch_tokens=128, context_tokens=1000
    )
    settings = EngineConfig(model=Path("none"), mask_threads=1, max_waiting=len(made), **config)
    speculator = create_speculator(settings, runner.info, TOKENIZER, lambda *_: runner)
    core = EngineCore(runner, compiler, VOCABULARY, settings, speculator=speculator)
    for request in made:
        core.submit(request)
    outputs: dict[str, list[EngineOutput]] = defaultdict(list)
    while not core.is_empty:
        for output in core.step():
            outputs[output.request_id].append(output)
        core.check()
    told = {}
    for name, those in outputs.items():
        text = TOKENIZER.decode([token_id for output in those for token_id in output.token_ids])
        failure = those[-1].failure
        told[name] = (text, f"{failure.code}: {failure.message}" if failure else str(those[-1].finish_reason))
    return told, core


@pytest.fixture(scope="module")
def expected(compiler: GrammarCompiler) -> Told:
    told: Told = {}
    for request in requests():
        told |= run(compiler, [request], slots=1, forced_tokens=False, prefix_cache=False)[0]
    return told


def values(text: str) -> list[Any]:
    """The guarded values of a turn."""
    if "<tool_call>" not in text:
        return [json.loads(text)]
    calls = text.split("<tool_call>")[1:]
    return [json.loads(part.removesuffix("</tool_call>"))["arguments"]["found"] for part in calls]


def test_every_value_is_valid_whatever_the_model_wants(expected: Told) -> None:
    ends = {}
    for name, (text, end) in expected.items():
        ends[name] = end
        if end != "stop":
            continue
        schema = next(ARRAYS[key] for key in ARRAYS if name.startswith((f"{key} answer", f"{key} calls")))
        found = values(text)
        assert len(found) == (1 if "answer" in name else 2)
        for value in found:
            jsonschema.validate(value, schema)
    assert set(ends.values()) == {"stop"}, ends


SPECULATIVE = SpeculativeConfig(methods=("skeleton", "ngram"), adaptive=False, prompt_lookup_min=1)


@pytest.mark.parametrize(
    ("slots", "forced_tokens", "speculative"),
    [(1, True, SPECULATIVE), (8, True, None), (8, False, SPECULATIVE)],
    ids=["alone with both", "together with forced tokens", "together with drafts"],
)
def test_company_forced_tokens_and_drafts_change_nothing(
    compiler: GrammarCompiler, expected: Told, slots: int, forced_tokens: bool, speculative: Any
) -> None:
    told, core = run(compiler, requests(), slots=slots, forced_tokens=forced_tokens, speculative=speculative)
    assert told == expected
    if speculative is not None:
        assert core.stats().num_accepted_tokens > 0


def test_a_request_without_a_way_on_ends_with_an_error_and_harms_no_other(compiler: GrammarCompiler) -> None:
    strict, longer = (
        lowered(JsonValue(json.dumps(unique(PAIR)))),
        unique(PAIR, minItems=7) | {"uniqueItems": False},
    )
    impossible = replace(lowered(JsonValue(json.dumps(longer))), guards=strict.guards, key="impossible")
    made = [
        EngineRequest(
            request_id="impossible",
            prompt_ids=(1,),
            sampling=SamplingParams(temperature=0.0),
            max_tokens=500,
            stop_ids=VOCABULARY.stop_ids,
            constraint=impossible,
        ),
        *requests()[:1],
    ]
    told, _ = run(compiler, made)
    assert told["impossible"][1].startswith("matcher_failed: every continuation repeats")
    assert {end for name, (_, end) in told.items() if name != "impossible"} == {"stop"}


class CpuClock:
    """Stands in for ``time`` in the guard's module."""

    seconds = 0.0

    def thread_time(self) -> float:
        return self.seconds


def test_a_guard_that_takes_too_long_for_a_mask_ends_its_request_alone(
    compiler: GrammarCompiler, expected: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = CpuClock()
    made = requests()[:3]
    slow = made[0].constraint
    assert slow is not None
    turn = vars(compiler.prepare(slow).result(30).matcher())["_turn"]
    narrow = guard_matcher.GuardedMatcher.narrow

    def narrowed(matcher: guard_matcher.GuardedMatcher, row: Any) -> None:
        narrow(matcher, row)
        if matcher._turn is turn:
            clock.seconds += guard_matcher.MAX_MASK_S + 1

    monkeypatch.setattr(guard_matcher, "time", clock)
    monkeypatch.setattr(guard_matcher.GuardedMatcher, "narrow", narrowed)
    told, _ = run(compiler, made)
    name = made[0].request_id
    assert told.pop(name)[1].startswith("matcher_failed: guards took 3.0 s of CPU time for one mask")
    assert told == {other.request_id: expected[other.request_id] for other in made[1:]}


def test_every_combination_is_within_reach(compiler: GrammarCompiler) -> None:
    constraint = CONSTRAINTS["product answer"]
    made = [
        EngineRequest(
            request_id=str(seed),
            prompt_ids=(1,),
            sampling=SamplingParams(temperature=3.0, seed=seed),
            max_tokens=400,
            stop_ids=VOCABULARY.stop_ids,
            constraint=constraint,
        )
        for seed in random.Random(1).sample(range(1000), 8)
    ]
    told, _ = run(compiler, made)
    orders = set()
    for text, end in told.values():
        assert end == "stop"
        items = json.loads(text)
        assert len({json.dumps(item) for item in items}) == 6
        orders.add(text)
    assert len(orders) == 8
