"""Several ``contains`` at once, and two items that must be equal: exact on every array over a few values."""

from __future__ import annotations

import itertools
import json
import random

import jsonschema
import pytest

from interlock.constraints.schema import SchemaOptions

ITEMS = [1, 2, "a", None]
ARRAY = {"type": "array", "items": {"enum": ITEMS}}
INTEGER, STRING, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}

SEVERAL_KINDS = [
    {"maxItems": 3, "allOf": [{"contains": INTEGER}, {"contains": STRING}]},
    {"maxItems": 3, "allOf": [{"contains": {"const": value}} for value in (1, 2, "a")]},
    {"allOf": [{"contains": INTEGER}, {"contains": STRING}, {"contains": NULL}, {"contains": {"const": 1}}]},
    {"allOf": [{"contains": INTEGER, "minContains": 2}, {"contains": {"const": 1}, "maxContains": 1}]},
    {"contains": NULL, "minContains": 0, "maxContains": 1, "allOf": [{"contains": STRING, "minContains": 2}]},
    {"prefixItems": [NULL], "minItems": 2, "allOf": [{"contains": INTEGER}, {"not": {"items": INTEGER}}]},
    {"minItems": 2, "maxItems": 4, "oneOf": [{"contains": INTEGER}, {"contains": STRING, "minContains": 2}]},
]

REPEATED = [
    {"not": {"uniqueItems": True}},
    {"not": {"uniqueItems": True}, "maxItems": 2},
    {"not": {"uniqueItems": True}, "minItems": 3, "maxItems": 3},
    {"not": {"uniqueItems": True}, "minItems": 4},
    {"oneOf": [{"maxItems": 2}, {"uniqueItems": True}]},
    {"if": {"uniqueItems": True}, "then": {"maxItems": 2}, "else": {"minItems": 3}},
]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize("keywords", [*SEVERAL_KINDS, *REPEATED])
def test_every_short_array_is_judged_as_by_a_validator(keywords, language) -> None:
    schema = {**ARRAY, **keywords}
    found, validator = language(schema), jsonschema.Draft202012Validator(schema)
    arrays = [list(items) for size in range(5) for items in itertools.product(ITEMS, repeat=size)]
    wrong = [items for items in arrays if found.accepts(_text(items)) != validator.is_valid(items)]
    assert wrong == []
    chooser = random.Random(1)
    for _ in range(20):
        found.walk(chooser)  # fails in a dead end


def test_arrays_valid_only_because_two_open_items_are_equal_are_left_out(language) -> None:
    schema = {"oneOf": [{"type": "array", "minItems": 1}, {"type": "array", "uniqueItems": True}]}
    found = language(schema, SchemaOptions(open_objects=True, guards=True))
    assert found.accepts("[]")
    assert not found.accepts("[1,1]")


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "array", "not": {"uniqueItems": True}}, "uniqueItems"),
        ({"type": "array", "allOf": [{"contains": {"const": n}} for n in range(9)]}, "contains"),
        (
            {"type": "array", "maxItems": 900, "allOf": [{"contains": INTEGER}, {"contains": STRING}]},
            "contains",
        ),
    ],
)
def test_what_has_too_many_ways_is_refused_by_name(schema, keyword, language, refusal) -> None:
    with pytest.raises(refusal) as error:
        language(schema, SchemaOptions(guards=True))
    assert [problem.keyword for problem in error.value.problems] == [keyword]


def test_values_of_items_that_are_too_many_do_not_matter(language) -> None:
    schema = {
        "type": "array",
        "uniqueItems": True,
        "prefixItems": [{"enum": [1, 2]}],
        "items": {"type": "boolean"},
        "maxItems": 1,
    }
    found = language(schema)
    assert found.accepts("[2]")
    assert not found.accepts("[2,true]")
