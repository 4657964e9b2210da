"""Relaxed schemas: what cannot be held is left out and named; nothing valid is lost by that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.schema import schema_grammar
from interlock.constraints.schema_report import schema_report
from interlock.core.constraint import JsonValue
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

BEHIND = {"type": "string", "pattern": "(?<=x)y"}
TOKENIZER = byte_tokenizer()
PROVIDER = LLGuidanceProvider(TOKENIZER)


def unenforced(schema: Any) -> list[tuple[str, str]]:
    grammar = schema_grammar(JsonValue(json.dumps(schema), relaxed=True), "j")
    assert all(item.reason for item in grammar.unenforced)
    return [(item.keyword, item.pointer) for item in grammar.unenforced]


def accepts(schema: Any, document: Any) -> bool:
    value = JsonValue(json.dumps(schema), relaxed=True)
    found = schema_report(value, PROVIDER, TOKENIZER, [json.dumps(document)])
    return found["compiled"] and found["instances"][0]["accepted"]


@pytest.mark.parametrize(
    ("schema", "left_out"),
    [
        ({"type": "integer", "minimum": 3}, []),
        (BEHIND, [("pattern", "/pattern")]),
        ({"properties": {"a/b": BEHIND}}, [("pattern", "/properties/a~1b/pattern")]),
        ({"properties": {"pattern": BEHIND}}, [("pattern", "/properties/pattern/pattern")]),
        ({"not": {"anyOf": [BEHIND, {"type": "null"}]}}, [("not", "/not")]),
        ({"if": BEHIND, "then": False}, [("if", "/if")]),
        (
            {"oneOf": [{"type": "integer"}, BEHIND]},
            [("oneOf", "/oneOf"), ("pattern", "/oneOf/1/pattern")],
        ),
        ({"type": "array", "not": {"uniqueItems": True}}, [("not", "/not")]),
    ],
)
def test_what_cannot_be_held_is_left_out_and_named(schema: Any, left_out: list[tuple[str, str]]) -> None:
    assert unenforced(schema) == left_out


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"oneOf": [{"type": "integer"}, BEHIND]}, "q"),
        ({"not": BEHIND}, "y"),
        ({"if": BEHIND, "then": False}, "y"),
        ({"properties": {"a": BEHIND, "b": {"type": "integer"}}}, {"a": "xy", "b": 1}),
    ],
)
def test_what_is_left_out_only_widens(schema: Any, document: Any) -> None:
    assert accepts(schema, document)


def test_the_rest_is_held() -> None:
    schema = {"type": "object", "properties": {"a": BEHIND, "b": {"type": "integer"}}, "required": ["a"]}
    assert not accepts(schema, {"b": 1})
    assert not accepts(schema, {"a": "y", "b": "1"})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "strng", **{k: v for k, v in BEHIND.items() if k != "type"}}, "unknown type"),
        ({"type": "string", "allOf": [{"type": "integer"}]}, "no document is valid"),
        ({"$ref": "http://example.com/elsewhere"}, "was not given"),
    ],
)
def test_mistakes_stay_refused(schema: Any, reason: str) -> None:
    with pytest.raises(InterlockError) as caught:
        unenforced(schema)
    assert reason in caught.value.message


def test_a_schema_that_is_too_complex_as_a_whole_loses_what_makes_it_so() -> None:
    branches = [
        {"patternProperties": {f"^{letter}.*{letter}": {"type": "integer"}, f"{letter}$": {"minimum": 1}}}
        for letter in "abcdefghijklmn"
    ]
    with pytest.raises(InterlockError):
        schema_grammar(JsonValue(json.dumps({"oneOf": branches})), "j")
    assert unenforced({"type": "object", "oneOf": branches})


def test_a_refusal_lists_what_hides_behind_the_first_problem() -> None:
    schema = {"properties": {"a": BEHIND, "b": {"type": "array", "not": {"uniqueItems": True}}}}
    with pytest.raises(InterlockError) as caught:
        schema_grammar(JsonValue(json.dumps(schema), tool="t"), "j")
    found = [(item.keyword, item.pointer, item.tool) for item in caught.value.problems]
    assert found == [("pattern", "/properties/a/pattern", "t"), ("not", "/properties/b/not", "t")]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("requird", "required"),
        ("additionalproperties", "additionalProperties"),
        ("minlength", "minLength"),
        ("enums", "enum"),
        ("ref", "$ref"),
        ("max_items", "maxItems"),
        ("patern", "pattern"),
        ("example", None),
        ("x-required", None),
        ("propertyOrdering", None),
        ("in", None),
    ],
)
def test_a_misspelt_keyword_is_noted_and_changes_nothing(name: str, meant: str | None) -> None:
    plain = schema_grammar(JsonValue('{"type": "string"}'), "j")
    found = schema_grammar(JsonValue(json.dumps({"type": "string", name: 3})), "j")
    assert found.lark == plain.lark
    assert [f"did you mean '{meant}'?" in note for note in found.notes] == ([True] if meant else [])
