"""Hostile schemas end in bounded time: compiled, or refused by name."""

from __future__ import annotations

import time
from typing import Any

import pytest

from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax


def _nested_one_of(depth: int, width: int) -> Any:
    schema: Any = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for level in range(depth):
        schema = {"oneOf": [{"properties": {f"k{level}{i}": schema}, "minProperties": i} for i in range(width)]}
    return schema


def _exponential_all_of(size: int):
    return {
        "allOf": [
            {"anyOf": [{"properties": {f"a{i}": {"const": 1}}}, {"properties": {f"b{i}": {"const": 1}}}]}
            for i in range(size)
        ]
    }


def _deep(depth: int):
    schema: Any = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def _ladder(size: int):
    """Every definition uses the next one twice."""
    defs = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(size)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{size}": {"type": "integer"}}}


def _alternatives_of_alternatives(depth: int):
    """Each of two objects holds the next level: sixteen levels are a page, written out they are megabytes."""
    levels = {
        f"d{i}": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"next": {"$ref": f"#/$defs/d{i + 1}"}, key: {"type": "integer"}},
                }
                for key in "ab"
            ]
        }
        for i in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**levels, f"d{depth}": {"type": "integer"}}}


HOSTILE = {
    "nested oneOf": _nested_one_of(5, 4),
    "deeply nested oneOf": _nested_one_of(12, 2),
    "oneOf of oneOf": _alternatives_of_alternatives(16),
    "oneOf of oneOf, deeper": _alternatives_of_alternatives(60),
    "wide oneOf": {"oneOf": [{"required": [f"a{i}", f"b{i}"], "properties": {f"c{i}": {"type": "integer"}}} for i in range(60)]},
    "exponential allOf": _exponential_all_of(30),
    "deep nesting": _deep(500),
    "reference ladder": _ladder(40),
    "circle": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "self in allOf": {"allOf": [{"$ref": "#"}, {"type": "object"}]},
    "negated self": {"not": {"$ref": "#"}},
    "infinite object": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
    "many values": {"enum": [f"value {i}" for i in range(100_000)]},
    "many numbers": {"enum": list(range(20_000))},
    "many objects": {"enum": [{"a": i} for i in range(2_000)]},
    "many keys": {"type": "object", "properties": {f"k{i}": {"type": "integer"} for i in range(5_000)}},
    "many negated keys": {"not": {"properties": {f"k{i}": {"const": i} for i in range(1_000)}}},
    "regex repeat": {"pattern": "^((a{0,100}){0,100}){0,100}$"},
    "regex of parentheses": {"pattern": "(" * 100_000},
    "regex nesting": {"pattern": "(" * 90 + "a" + ")" * 90},
    "regex look-ahead": {"pattern": "^" + "".join(f"(?=.*{chr(97 + i)})" for i in range(20)) + ".*$"},
    "regex meets length": {"pattern": "(a|b|ab)*c(a|b|ab)*", "minLength": 100_000},
    "overlapping patterns": {"patternProperties": {f"{chr(97 + i)}": {"minimum": i} for i in range(12)}},
    "many contains": {"allOf": [{"contains": {"const": i}} for i in range(20)]},
    "dependent ring": {"dependentRequired": {f"k{i}": [f"k{(i + 1) % 200}"] for i in range(200)}},
    "conditions": {"allOf": [{"if": {"required": [f"k{i}"]}, "then": {"required": [f"m{i}"]}} for i in range(40)]},
    "huge bounds": {"type": "array", "minItems": 10**9, "items": {"type": "string", "minLength": 10**9}},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_end_soon(name: str) -> None:
    begin = time.process_time()
    compile_schema(
        HOSTILE[name],
        SchemaOptions(property_order="any", open_objects=True),
        json_syntax(",", ":", flexible=False),
        "j",
    )
    assert time.process_time() - begin < 6


@pytest.mark.parametrize(("schema", "pointers"), [
    ({"type": "integer", "minimum": 5, "maximum": 3}, {"/minimum", "/maximum"}),
    ({"enum": []}, {"/enum"}),
    ({"type": "string", "pattern": "^a", "const": "b"}, {"/pattern", "/const"}),
    ({"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]}, {"/properties/x/enum"}),
    ({"type": "object", "properties": {"x": False}, "required": ["x"]}, {"/properties/x"}),
    ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, {"/items", "/uniqueItems", "/minItems"}),
    ({"type": "array", "items": {"allOf": [{"const": 1}, {"const": 2}]}, "minItems": 1}, {"/items/allOf/0/const", "/items/allOf/1/const"}),
    ({"allOf": [{"type": "string"}, {"$ref": "#/$defs/n"}], "$defs": {"n": {"title": "n", "type": "null"}}}, {"/allOf/0/type", "/$defs/n/type"}),
    ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, {"/required", "/properties"}),
    (False, set()),
])  # fmt: skip
def test_an_unsatisfiable_schema_says_what_contradicts_and_where(schema, pointers) -> None:
    compiled = compile_schema(schema, SchemaOptions(), json_syntax(",", ":", flexible=False), "j")
    (problem,) = compiled.problems
    assert "no document is valid" in problem.reason
    assert {pointer for pointer in pointers if f"at '{pointer}'" in problem.reason} == pointers, problem.reason


def test_the_complement_of_a_partly_known_format_is_refused() -> None:
    schema = {"type": "string", "not": {"format": "regex"}}
    (problem,) = compile_schema(schema, SchemaOptions(), json_syntax(",", ":", flexible=False), "j").problems
    assert (problem.keyword, problem.pointer) == ("format", "")


def test_all_refusals_come_at_once() -> None:
    bad = {"type": "array", "uniqueItems": True}
    schema = {"properties": {"a": bad, "b": {"items": {**bad, "maxItems": 9}}}}
    compiled = compile_schema(schema, SchemaOptions(), json_syntax(",", ":", flexible=False), "j")
    assert [item.keyword for item in compiled.problems] == ["uniqueItems", "uniqueItems"]
    assert sorted(item.pointer for item in compiled.problems) == [
        "/properties/a/uniqueItems",
        "/properties/b/items/uniqueItems",
    ]


def _optional(count: int, *required: str) -> Any:
    return {"type": "object", "properties": {f"k{i}": {} for i in range(count)}, "required": [*required]}


@pytest.mark.parametrize(
    ("schema", "order", "refused"),
    [
        (_optional(980), "declared", None),
        (_optional(981), "declared", "/properties"),
        (_optional(1800, "k900"), "declared", None),
        (_optional(1900), "any", None),
        (_optional(1901), "any", "/properties"),
        ({"items": _optional(981)}, "declared", "/items/properties"),
    ],
)
def test_more_optional_keys_than_the_engine_can_follow_are_refused(
    schema: Any, order: Any, refused: str | None
) -> None:
    syntax = json_syntax(", ", ": ", flexible=False)
    found = compile_schema(schema, SchemaOptions(property_order=order), syntax, "j").problems
    assert [item.pointer for item in found] == ([refused] if refused else [])
    assert all("optional keys" in item.reason for item in found)


def test_too_many_alternatives_name_the_keyword_that_multiplies_them() -> None:
    branches = [
        {"anyOf": [{"properties": {f"x{i}": {"const": j}}, "required": [f"x{i}"]} for j in range(5)]}
        for i in range(5)
    ]
    schema = {"properties": {"a": {"type": "object", "allOf": branches}}}
    (found,) = compile_schema(schema, SchemaOptions(), json_syntax(", ", ": ", flexible=False), "j").problems
    assert (found.keyword, found.pointer) == ("allOf", "/properties/a/allOf")
    assert "more than 400 alternatives" in found.reason
