"""Outputs that run out of tokens are brought to a legal end where there is room for one."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.ending import Ending, EndingSearch, Missing
from interlock.constraints.ending_hints import EndingHints
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import (
    Alternative,
    ConstraintSpec,
    FreeText,
    JsonValue,
    LoweredConstraint,
    Marker,
    Node,
    Sequence,
    Text,
)
from interlock.core.engine import EngineOutput, EngineRequest, LengthClosing
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.engine.core import EngineCore
from interlock.runners.fake import FakeRunner, UniformLogits
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
OPENER = TOKENIZER.special_tokens["<tool_call>"]
STRING = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "object": {
        "type": "object",
        "properties": {"name": STRING, "age": {"type": "integer", "minimum": 10}, "on": {"type": "boolean"}},
        "required": ["name", "age"],
    },
    "items": {
        "type": "array",
        "minItems": 1,
        "items": {"type": "object", "properties": {"k": STRING, "v": {"enum": ["left", "right"]}}, "required": ["k", "v"]},
    },
    "words": {"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "string", "minLength": 3}},
    "anything": {"type": "object"},
}  # fmt: skip


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(LLGuidanceProvider(TOKENIZER), GrammarCache(1 << 26))


def lowered(root: Node) -> LoweredConstraint:
    return lower(ConstraintSpec(root=root), TOKENIZER.special_tokens)


def asked(constraint: LoweredConstraint, max_tokens: int, **fields: Any) -> EngineRequest:
    made = EngineRequest(
        request_id=f"{max_tokens}",
        prompt_ids=(1, 2, 3),
        sampling=SamplingParams(temperature=1.0, seed=max_tokens),
        max_tokens=max_tokens,
        stop_ids=TOKENIZER.vocabulary.stop_ids,
        constraint=constraint,
        closing=LengthClosing(),
    )
    return replace(made, **fields)


def told(compiler: GrammarCompiler, requests: list[EngineRequest], context: int = 400) -> list[tuple[str, EngineOutput]]:  # fmt: skip
    """The text and the last output of each."""
    runner = FakeRunner(
        TOKENIZER.vocabulary.size,
        logits=UniformLogits(TOKENIZER.vocabulary.size, 0),
        slots=8,
        max_batch_tokens=512,
        context_tokens=context,
    )
    settings = EngineConfig(model=Path("none"), mask_threads=1, max_waiting=len(requests))
    core = EngineCore(runner, compiler, TOKENIZER.vocabulary, settings)
    for request in requests:
        if request.constraint is not None:
            compiler.prepare(request.constraint).result(30)
        core.submit(request)
    outputs: dict[str, list[EngineOutput]] = defaultdict(list)
    while not core.is_empty:
        for output in core.step():
            outputs[output.request_id].append(output)
        core.check()
    return [
        (TOKENIZER.decode([one for part in parts for one in part.token_ids]), parts[-1])
        for parts in (outputs[request.request_id] for request in requests)
    ]


def shortest(compiler: GrammarCompiler, constraint: LoweredConstraint) -> int:
    hints = EndingHints(constraint.closers, constraint.literals, constraint.required)
    matcher = compiler.prepare(constraint).result(30).matcher()
    found = compiler.endings.search.find(matcher, hints)
    assert found is not None
    return len(found.token_ids)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_budget_with_room_for_a_document_gives_a_valid_one(compiler: GrammarCompiler, name: str) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS[name])))
    least = shortest(compiler, constraint)
    budgets = range(least, least + 24)
    for text, last in told(compiler, [asked(constraint, budget) for budget in budgets]):
        jsonschema.validate(json.loads(text), SCHEMAS[name])
        assert last.is_accepting
        assert last.finish_reason in ("length", "stop")


@pytest.mark.parametrize("name", ["object", "items", "words"])
def test_a_budget_far_too_small_is_cut_off(compiler: GrammarCompiler, name: str) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS[name])))
    budgets = range(1, shortest(compiler, constraint) // 2)
    for budget, (text, last) in zip(
        budgets, told(compiler, [asked(constraint, budget) for budget in budgets]), strict=True
    ):
        assert (last.finish_reason, last.is_accepting, len(text.encode())) == ("length", False, budget)


def test_where_there_is_clearly_no_room_it_is_searched_once_more_and_not_far(
    compiler: GrammarCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = {"type": "string", "minLength": 3, "maxLength": 9}
    constraint = lowered(JsonValue(json.dumps({"type": "array", "items": word, "minItems": 50})))
    num_searches: list[int] = []
    find = EndingSearch.find_or_why

    def counted(search: EndingSearch, matcher: Matcher, hints: EndingHints, most: int) -> Ending | Missing:
        num_searches.append(most)
        return find(search, matcher, hints, most)

    monkeypatch.setattr(EndingSearch, "find_or_why", counted)
    requests = [
        asked(constraint, budget, request_id=name) for name, budget in (("a", 40), ("b", 40), ("c", 32))
    ]
    for text, last in told(compiler, requests):
        assert (last.finish_reason, last.is_accepting) == ("length", False)
        assert text.startswith('["')
    assert [most for most in num_searches if most > 10] == [40]
    assert len(num_searches) <= 1 + 2 * len(requests)


def test_who_takes_the_shorter_of_two_ways_is_closed_on_it_though_the_first_search_took_the_other(
    compiler: GrammarCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, seen = EndingSearch.find_or_why, set[int]()

    def first_one_too_long(
        search: EndingSearch, matcher: Matcher, hints: EndingHints, most: int
    ) -> Ending | Missing:
        is_first = most == 70 and most not in seen
        seen.add(most)
        return "too long" if is_first else find(search, matcher, hints, most)

    monkeypatch.setattr(EndingSearch, "find_or_why", first_one_too_long)
    word = {"type": "string", "minLength": 3, "maxLength": 9}

    def kind(name: str, rest: dict[str, Any]) -> dict[str, Any]:
        properties = {"kind": {"const": name}, **rest}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    short, long = (
        kind("a", {"text": STRING}),
        kind("b", {"words": {"type": "array", "items": word, "minItems": 50}}),
    )
    constraint = lowered(JsonValue(json.dumps({"anyOf": [short, long]})))
    for text, last in told(compiler, [asked(constraint, 70)]):
        assert text.startswith('{"kind": "a"'), "what this model takes"
        assert last.is_accepting, text


def test_a_closed_answer_ends_by_length_though_nothing_could_follow(compiler: GrammarCompiler) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS["object"])))
    ((text, last),) = told(compiler, [asked(constraint, 60)])
    assert json.loads(text)
    assert last.finish_reason == "length"


def test_the_context_is_a_budget_too(compiler: GrammarCompiler) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS["object"])))
    ((text, last),) = told(compiler, [asked(constraint, 1000)], context=70)
    assert json.loads(text)
    assert last.finish_reason == "length"


def test_a_far_budget_is_closed_as_well(compiler: GrammarCompiler) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS["object"])))
    ((text, last),) = told(compiler, [asked(constraint, 900)], context=2000)
    assert json.loads(text)
    assert last.is_accepting


def test_who_does_not_want_it_is_cut_off(compiler: GrammarCompiler) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS["object"])))
    ((_, last),) = told(compiler, [asked(constraint, 60, closing=None)])
    assert (last.finish_reason, last.is_accepting) == ("length", False)


def test_endings_have_log_probabilities_where_those_are_wanted(compiler: GrammarCompiler) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS["object"])))
    plain, scored = asked(constraint, 60), SamplingParams(temperature=1.0, seed=60, logprobs=2)
    ((expected, _),) = told(compiler, [plain])
    ((text, last),) = told(compiler, [replace(plain, sampling=scored)])
    assert text == expected
    assert last.finish_reason == "length"
    assert len(last.logprobs) == len(last.token_ids)


def test_what_a_request_forbids_does_not_close_it(compiler: GrammarCompiler) -> None:
    constraint = lowered(JsonValue(json.dumps(SCHEMAS["object"])))
    limits = TokenLimits(banned=((ord("}"),),))
    ((_, last),) = told(compiler, [asked(constraint, 60, limits=limits)])
    assert (last.finish_reason, last.is_accepting) == ("length", False)


CALL = Sequence(
    (
        Marker("<tool_call>"),
        Text('{"arguments": '),
        JsonValue('{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}'),
        Text("}"),
        Marker("</tool_call>"),
    )
)


@pytest.mark.parametrize(("calls", "is_whole"), [(True, True), (False, False)])
def test_a_call_is_closed_only_on_request(compiler: GrammarCompiler, calls: bool, is_whole: bool) -> None:
    closing = LengthClosing(openers=(OPENER,), calls=calls)
    ((text, last),) = told(compiler, [asked(lowered(CALL), 33, closing=closing)])
    assert (last.finish_reason, last.is_accepting) == ("length", is_whole)
    assert text.endswith("</tool_call>") == is_whole


def test_thinking_is_closed_for_an_answer_and_no_call_is_begun(compiler: GrammarCompiler) -> None:
    answer = JsonValue(json.dumps(SCHEMAS["object"]))
    root = Sequence((FreeText(("</think>",)), Marker("</think>"), Alternative((CALL, answer))))
    closing = LengthClosing(openers=(OPENER,))
    budget = shortest(compiler, lowered(answer)) + 4
    results = told(compiler, [asked(lowered(root), budget + more, closing=closing) for more in range(6)])
    for text, last in results:
        thought, _, said = text.partition("</think>")
        if "<tool_call>" not in said:
            jsonschema.validate(json.loads(said), SCHEMAS["object"])
        assert "<tool_call>" not in thought
        assert last.finish_reason == "length"
    assert any("<tool_call>" not in text for text, _ in results)
