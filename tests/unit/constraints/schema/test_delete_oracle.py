"""Nothing is ever ignored: removing a keyword changes what is accepted, beside any siblings."""

from __future__ import annotations

import json

import pytest

from interlock.constraints.schema.keywords import TABLE

# keyword: (schema that needs it, a document that only this keyword forbids)
NEEDED = {
    "type": ({"type": "string"}, 1),
    "enum": ({"enum": ["a", 2]}, 1),
    "const": ({"const": "a"}, 1),
    "allOf": ({"allOf": [{"type": "string"}, True]}, 1),
    "anyOf": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1),
    "oneOf": ({"oneOf": [{"type": "number"}, {"minimum": 0}]}, 1),
    "not": ({"not": {"type": "integer"}}, 1),
    "if": ({"if": {"type": "integer"}, "then": {"minimum": 5}}, 1),
    "then": ({"if": {"type": "integer"}, "then": {"minimum": 5}}, 1),
    "else": ({"if": {"type": "string"}, "else": {"minimum": 5}}, 1),
    "minLength": ({"minLength": 2}, "a"),
    "maxLength": ({"maxLength": 2}, "abc"),
    "pattern": ({"pattern": "^b"}, "a"),
    "format": ({"format": "date"}, "2024-02-30"),
    "minimum": ({"minimum": 2}, 1),
    "maximum": ({"maximum": 2}, 3),
    "exclusiveMinimum": ({"exclusiveMinimum": 1}, 1),
    "exclusiveMaximum": ({"exclusiveMaximum": 3}, 3),
    "multipleOf": ({"multipleOf": 2}, 3),
    "items": ({"items": {"type": "string"}}, [1]),
    "prefixItems": ({"prefixItems": [{"type": "string"}]}, [1]),
    "additionalItems": ({"items": [True], "additionalItems": False}, [1, 2]),
    "minItems": ({"minItems": 1}, []),
    "maxItems": ({"maxItems": 1}, [1, 2]),
    "contains": ({"contains": {"type": "string"}}, [1]),
    "minContains": ({"contains": {"type": "string"}, "minContains": 2}, ["a"]),
    "maxContains": ({"contains": {"type": "string"}, "maxContains": 1}, ["a", "b"]),
    "uniqueItems": ({"uniqueItems": True, "items": {"enum": [1, 2]}}, [1, 1]),
    "unevaluatedItems": ({"prefixItems": [True], "unevaluatedItems": False}, [1, 2]),
    "properties": ({"properties": {"a": {"type": "string"}}}, {"a": 1}),
    "required": ({"required": ["a"]}, {"b": 1}),
    "additionalProperties": ({"additionalProperties": {"type": "string"}}, {"a": 1}),
    "patternProperties": ({"patternProperties": {"^a": {"type": "string"}}}, {"ab": 1}),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, {"ab": 1}),
    "minProperties": ({"minProperties": 1}, {}),
    "maxProperties": ({"maxProperties": 1}, {"a": 1, "b": 2}),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    "dependentSchemas": ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}),
    "dependencies": ({"dependencies": {"a": ["b"]}}, {"a": 1}),
    "unevaluatedProperties": ({"properties": {"a": True}, "unevaluatedProperties": False}, {"b": 1}),
    "$ref": ({"$ref": "#/$defs/string", "$defs": {"string": {"type": "string"}}}, 1),
    "$dynamicRef": ({"$dynamicRef": "#s", "$defs": {"s": {"$dynamicAnchor": "s", "type": "string"}}}, 1),
}  # fmt: skip

SIBLINGS = [
    {},
    {"title": "t", "default": 1, "x-note": {"type": "null"}, "examples": [1]},
    {"type": ["string", "integer", "array", "object"]},
    {"allOf": [{"description": "nothing"}, {"not": {"type": "null"}}]},
    {"anyOf": [{"type": ["integer", "string"]}, {"type": ["array", "object"]}]},
    {"oneOf": [{"type": "null"}, {"type": ["integer", "string", "array", "object"]}]},
    {"not": {"const": "no such value"}},
    {"if": {"type": "null"}, "then": False},
    {"$ref": "#/$defs/anything", "$defs": {"anything": {"minLength": 0}}},
    {"properties": {"zz": {"type": "integer"}}},
    {"patternProperties": {"^zz": {"type": "integer"}}, "minProperties": 0},
    {"maxItems": 10, "maxLength": 10, "maximum": 1000, "maxProperties": 10},
    {"enum": [1, 3, "a", "abc", "2024-02-30", [], [1], [1, 1], [1, 2], ["a"], ["a", "b"], {}, {"a": 1}, {"ab": 1}, {"b": 1}, {"a": 1, "b": 2}]},
]  # fmt: skip


def _merged(schema, sibling):
    if set(sibling) & (set(schema) - {"$defs"}):
        return None
    return {**schema, **sibling, "$defs": {**schema.get("$defs", {}), **sibling.get("$defs", {})}}


def _refuses(schema, keyword, language, refusal) -> bool:
    try:
        language(schema)
    except refusal as error:
        return any(item.keyword == keyword for item in error.problems)
    return False


@pytest.mark.parametrize("keyword", NEEDED)
def test_removing_a_keyword_changes_what_is_accepted(keyword, language, refusal) -> None:
    schema, document = NEEDED[keyword]
    text = json.dumps(document, separators=(",", ":"))
    for sibling in SIBLINGS:
        whole = _merged(schema, sibling)
        if whole is None:
            continue
        without = {key: value for key, value in whole.items() if key != keyword}
        assert language(without).accepts(text), (keyword, sibling)
        assert _refuses(whole, keyword, language, refusal) or not language(whole).accepts(text), sibling


def test_every_keyword_of_the_table_is_probed() -> None:
    extensions = {"nullable", "$recursiveRef"}
    enforced = {row.name for row in TABLE if row.holder in ("grammar", "guard") or row.name.endswith("Ref")}
    assert enforced - extensions == set(NEEDED) - {"$ref"} | (enforced & {"$ref"})
