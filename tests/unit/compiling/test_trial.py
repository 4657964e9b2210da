from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO

import pytest

from interlock.child import frame
from interlock.compiling.helper import run
from interlock.compiling.messages import (
    FROM_HELPER,
    TO_HELPER,
    Job,
    Lowered,
    Ready,
    Refused,
    Setup,
)
from interlock.compiling.results import ResultCache
from interlock.compiling.trial import Trial, TrialTokenizer
from interlock.constraints.schema import SchemaOptions
from interlock.core.constraint import (
    Choice,
    ConstraintSpec,
    Grammar,
    JsonValue,
    LoweredConstraint,
    Marker,
    Node,
    Regex,
    Sequence,
    Text,
)
from interlock.errors import InterlockError, Problem

SPECIAL_TOKENS = {"<tool_call>": 151_657, "<pad>": 0, "[TOOL]": 3}
TRIAL = Trial(SPECIAL_TOKENS)
LOWERED = LoweredConstraint(provider="llguidance", grammar="start: ", key="k", notes=("n",))
REFUSED = InterlockError(
    "invalid_schema",
    "m",
    param="p",
    problems=(Problem(reason="r", keyword="k", pointer="/k", tool="t"),),
    hint="h",
)


def test_the_trial_vocabulary_has_special_tokens_at_their_own_ids() -> None:
    tokenizer = TrialTokenizer(SPECIAL_TOKENS)
    tokens = tokenizer.vocabulary.tokens
    assert {spelling: tokens[token_id].decode() for spelling, token_id in SPECIAL_TOKENS.items()} == {
        spelling: spelling for spelling in SPECIAL_TOKENS
    }
    assert tokenizer.decode(tokenizer.encode("é[TOOL]")) == "é[TOOL]"
    assert not set(tokenizer.encode_text("[TOOL]")) & set(SPECIAL_TOKENS.values())


@pytest.mark.parametrize(
    "node", [Marker("<tool_call>"), Marker("[TOOL]"), Marker("<other>"), Choice(("a", "b"))]
)
def test_what_compiles_is_lowered(node: Node) -> None:
    answer = run(TRIAL, Job(ConstraintSpec(root=node).to_json()))
    assert isinstance(answer, Lowered)
    assert answer.seconds > 0


@pytest.mark.parametrize(
    ("node", "code", "param", "words"),
    [
        (Regex("a(b", "guided_regex"), "invalid_regex", "guided_regex", "unclosed group"),
        (Regex("a$b", "guided_regex"), "invalid_regex", "guided_regex", "lookarounds not supported"),
        (Grammar("start: (", "lark", "grammar"), "invalid_grammar", "grammar", "Expected"),
        (Grammar('start: A\nA: "a" & "b"', "lark", "grammar"), "invalid_grammar", "grammar", "matches nothing"),
        (Grammar("root ::= nope", "gbnf", "grammar"), "invalid_grammar", "grammar", "nope"),
        (JsonValue('{"oneOf": [{}, {}]}', origin="schema"), "invalid_schema", "schema", "'oneOf' at '/oneOf'"),
        (
            JsonValue('{"$ref": "#"}', origin="schema"),
            "invalid_schema",
            "schema",
            "refers to itself without end",
        ),
        (
            JsonValue('{"minimum": 2, "maximum": 1, "type": "integer"}', origin="s"),
            "invalid_schema",
            "s",
            "contradict each other",
        ),
    ],
)
def test_the_part_at_fault_is_named(node: Node, code: str, param: str, words: str) -> None:
    whole = Sequence((Text("{"), JsonValue("true"), Text("}"), node))
    with pytest.raises(InterlockError) as caught:
        TRIAL.run(ConstraintSpec(root=whole))
    assert (caught.value.code, caught.value.param) == (code, param)
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["", "{}", '{"root": {"kind": "x"}, "provider": "llguidance"}'])
def test_a_spec_that_is_none_fails_the_job_not_the_helper(text: str) -> None:
    answer = run(TRIAL, Job(text))
    assert isinstance(answer, Refused)
    assert answer.code == "compile_failed"


@pytest.mark.parametrize("message", [Setup({"<a>": 1}, 5, 1.5), Job("{}")])
def test_messages_to_a_helper_survive_the_wire(message: Setup | Job) -> None:
    stream = BytesIO(frame(message) * 2)
    assert [TO_HELPER.read(stream) for _ in range(3)] == [message, message, None]


@pytest.mark.parametrize("message", [Ready(), Lowered(LOWERED, 0.5), Refused.of(REFUSED, 0.25)])
def test_messages_of_a_helper_survive_the_wire(message: Ready | Lowered | Refused) -> None:
    decoded = FROM_HELPER.read(BytesIO(frame(message)))
    assert decoded == message
    if isinstance(decoded, Refused):
        assert decoded.error() == REFUSED


def lowered(size: int) -> LoweredConstraint:
    return LoweredConstraint(provider="llguidance", grammar="x" * size, key="k")


def test_results_are_bounded_by_bytes_and_by_number() -> None:
    results = ResultCache(max_entries=3, max_bytes=10_000)
    for key in "abcd":
        results.put(key, lowered(10))
    assert [results.get(key) is None for key in "abcd"] == [True, False, False, False]
    results.put("e", lowered(8_500))
    assert [results.get(key) is None for key in "bcde"] == [True, True, False, False]
    results.put("f", lowered(20_000))
    assert results.get("f") is None
    results.put("e", REFUSED)
    assert results.get("e") == REFUSED
    assert len(results) == 2
    assert results.num_bytes < 3_000


def test_without_guards_what_only_they_hold_is_refused_with_its_place():
    spec = ConstraintSpec(root=JsonValue('{"type": "array", "items": {"type": "string"}, "uniqueItems": true}'))
    assert Trial({}).run(spec).guards
    with pytest.raises(InterlockError) as refused:
        Trial({}, options=SchemaOptions()).run(spec)
    assert (refused.value.problems[0].keyword, refused.value.problems[0].pointer) == (
        "uniqueItems",
        "/uniqueItems",
    )
    report = Trial({}, options=SchemaOptions()).check(spec, (), {})
    assert not report["compiled"]
    assert Trial({}).check(spec, (), {})["compiled"]


HARD = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {
            "type": "string",
            "allOf": [
                {"oneOf": [{"pattern": f"{a}{b}"}, {"pattern": f"{b}{a}"}, {"pattern": f"{a}.*{b}"}]}
                for a, b in ("a1", "a2", "a3", "b1", "b2")
            ],
        },
    },
    "required": ["s"],
}
"""Within the limits of the schema compiler, beyond those of the grammar engine."""


def test_what_the_engine_does_not_take_is_left_out_of_a_relaxed_schema() -> None:
    value = JsonValue(json.dumps(HARD))
    with pytest.raises(InterlockError, match="exceeds a limit"):
        TRIAL.run(ConstraintSpec(root=value))
    lowered = TRIAL.run(ConstraintSpec(root=Sequence((Text("x"), replace(value, relaxed=True)))))
    assert {item.keyword for item in lowered.unenforced} == {"oneOf", "pattern"}
    assert all("exceeds a limit" in item.reason for item in lowered.unenforced)
    report = TRIAL.check(ConstraintSpec(root=replace(value, relaxed=True)), ['{"s":"x"}', '{"n":1}'], {})
    assert [item["accepted"] for item in report["instances"]] == [True, False]
