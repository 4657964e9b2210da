"""The number of keys beside kinds of keys that must exist, where a guard holds that no key comes twice."""

from __future__ import annotations

import itertools
import json

import jsonschema
import pytest

from interlock.constraints.schema import SchemaOptions

WATCHED = SchemaOptions(open_objects=True, property_order="any", guards=True)
NOT_ALL_INTEGERS = {"not": {"additionalProperties": {"type": "integer"}}}
SOME_A = {"not": {"propertyNames": {"not": {"pattern": "a"}}}}
SOME_B = {"not": {"propertyNames": {"not": {"pattern": "b"}}}}
SOME_C = {"not": {"propertyNames": {"not": {"pattern": "c"}}}}

SCHEMAS = {
    "two kinds and two keys": {"allOf": [SOME_A, SOME_B], "minProperties": 2},
    "three kinds, at most two keys": {"allOf": [SOME_A, SOME_B, SOME_C], "maxProperties": 2},
    "a kind of key and a kind of value": {"allOf": [SOME_A, NOT_ALL_INTEGERS], "minProperties": 2, "maxProperties": 3},
    "a declared key may show a kind": {"allOf": [SOME_A, SOME_B], "properties": {"a": {}, "b": {}}, "minProperties": 3},
    "more keys than the rule has cases": {"properties": {"x": {}}, "minProperties": 2, "maxProperties": 5000},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_counts_beside_kinds_of_keys_are_exact(name: str, language) -> None:
    schema = {"type": "object", **SCHEMAS[name]}
    validator, found = jsonschema.Draft202012Validator(schema), language(schema, WATCHED)
    valid = 0
    for size in range(4):
        for keys in itertools.permutations(["a", "b", "ab", "bc", "x"], size):
            for last in (1, "s"):
                document = dict.fromkeys(keys, 1) | dict.fromkeys(keys[-1:], last)
                expected = validator.is_valid(document)
                assert found.accepts(json.dumps(document, separators=(",", ":"))) == expected, document
                valid += expected
    assert valid


def test_several_kinds_beside_a_count_are_refused_without_a_guard(language, refusal) -> None:
    with pytest.raises(refusal, match="minProperties"):
        language({"type": "object", **SCHEMAS["two kinds and two keys"]}, SchemaOptions(open_objects=True))
