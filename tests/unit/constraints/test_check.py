from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.constraints.check import SchemaCheck
from interlock.constraints.providers.registry import create_provider
from interlock.constraints.schema.text.formats import PATTERNS
from interlock.constraints.validator import validator
from interlock.core.constraint import JsonValue
from interlock.tokenization.byte_tokenizer import byte_tokenizer

AB = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a", "b"],
}
DATE = {"format": "date"}


@pytest.fixture(scope="module")
def provider() -> Any:
    return create_provider("llguidance", byte_tokenizer())


def check(provider: Any, schema: Any) -> SchemaCheck:
    return SchemaCheck(JsonValue(json.dumps(schema)), provider, byte_tokenizer())


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_a_sample_of_a_format_is_found(provider: Any, name: str) -> None:
    schema = {"type": "string", "format": name}
    sample = check(provider, schema).sample()
    assert sample is not None
    assert validator(schema, assert_formats=True).is_valid(json.loads(sample))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 300},
        {"type": "string", "pattern": "^[0-9]{20}=[A-Z]{3}!$"},
        {"type": "array", "items": {"type": "string", "minLength": 40}, "minItems": 30},
    ],
)
def test_a_sample_of_a_long_document_is_found(provider: Any, schema: Any) -> None:
    sample = check(provider, schema).sample()
    assert sample is not None
    assert validator(schema).is_valid(json.loads(sample))


@pytest.mark.parametrize(
    ("schema", "text", "position", "reason"),
    [
        (AB, '{"a":"x"}', 5, "at '/a' expected 0-9 '-', not '\"'; 'x' is not of type 'integer' (type)"),
        (AB, '{"a":1}', 6, "'b' is a required property (required)"),
        (AB, '{"b":"x","a":1}', 2, "not in the order of the schema (property_order 'any' would do)"),
        (AB, '{"a":1,"b":"x","c":1}', 14, "it has undeclared keys (open_objects would do)"),
        (AB, '{"b":"x","a":1,"c":1}', 2, "(open_objects with property_order 'any' would do)"),
        (AB, '{"a":NaN,"b":""}', 5, "not JSON: NaN is no value"),
        (AB, '{"a":1,"b":"\\q"}', 12, "not JSON: Invalid \\escape"),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "0.123456789012345678", 16, "written in another way"),
        (DATE, '"2024-02-30"', 9, "at the root expected 0-2, not '3'; '2024-02-30' is not a 'date' (format)"),
        ({"type": "array", "prefixItems": [True], "items": DATE}, '[1,"x"]', 4, "at '/1' expected 0-9"),
        (
            {"properties": {"a": {"enum": [1]}, "b": {"pattern": "x"}}, "type": "object"},
            '{"a":2,"b":"y"}',
            5,
            "2 is not one of [1] (enum)",
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
            "2.5",
            3,
            "no branch of anyOf fits: 2.5 is not of type 'integer' (type); 2.5 is less than the minimum of 5 (minimum)",
        ),
        (
            {"properties": {"a": False}, "additionalProperties": {"type": "null"}, "type": "object"},
            '{"b":null,"a":2}',
            12,
            "False schema does not allow 2",
        ),
    ],
)
def test_the_reason_fits_the_place_where_an_instance_stops(
    provider: Any, schema: Any, text: str, position: int, reason: str
) -> None:
    found = check(provider, schema).verdict(text)
    assert not found.accepted
    assert found.position == position
    assert reason in found.reason


def test_an_instance_that_is_nested_too_deeply_is_no_json(provider: Any) -> None:
    found = check(provider, {}).verdict("[" * 100_000)
    assert not found.accepted
    assert "not JSON" in found.reason


@pytest.mark.parametrize(("count", "order"), [(980, "declared"), (1900, "any")])
def test_as_many_optional_keys_as_are_taken_can_be_written(provider: Any, count: int, order: Any) -> None:
    schema = {"type": "object", "properties": {f"k{i}": {"type": "null"} for i in range(count)}}
    value = JsonValue(json.dumps(schema), property_order=order, open_objects=True)
    text = json.dumps({"k0": None, "k1": None, f"k{count - 1}": None, "other": 1})
    assert SchemaCheck(value, provider, byte_tokenizer()).generates(text)
