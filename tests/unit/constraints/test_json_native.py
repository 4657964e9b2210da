from __future__ import annotations

import json

import pytest

from interlock.constraints import json_native
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
PROVIDER = LLGuidanceProvider(TOKENIZER)


def accepts(value: JsonValue, text: str) -> bool:
    matcher = PROVIDER.compile(lower(ConstraintSpec(root=value), {}).grammar).matcher()
    ids = TOKENIZER.encode_text(text)
    if matcher.validate(ids) < len(ids):
        return False
    for token_id in ids:
        matcher.accept(token_id)
    return matcher.is_accepting


def problems(schema: object) -> dict[str, str]:
    with pytest.raises(InterlockError) as caught:
        json_native.schema_grammar(JsonValue(json.dumps(schema), origin="here", tool="f"), "j")
    assert caught.value.code == "invalid_schema"
    assert caught.value.param == "here"
    assert all(problem.tool == "f" for problem in caught.value.problems)
    return {problem.pointer: problem.keyword for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {
                "properties": {
                    "a": {"not": {}},
                    "b/c": {"items": {"uniqueItems": True}},
                    "d": {"anyOf": [{"if": {}, "then": {}}, {"$ref": "https://example.org/x"}]},
                },
                "$defs": {"e": {"dependentRequired": {"a": ["b"]}}},
                "unevaluatedProperties": False,
            },
            {
                "/properties/a/not": "not",
                "/properties/b~1c/items/uniqueItems": "uniqueItems",
                "/properties/d/anyOf/0/if": "if",
                "/properties/d/anyOf/1/$ref": "$ref",
                "/$defs/e/dependentRequired": "dependentRequired",
                "/unevaluatedProperties": "unevaluatedProperties",
            },
        ),
        ({"type": "text"}, {"/type": "type"}),
        ({"type": 5}, {"/type": "type"}),
        ({"required": "a", "minLength": -1}, {"/required": "required", "/minLength": "minLength"}),
        ({"properties": []}, {"/properties": "properties"}),
        ({"properties": {"a": 1}}, {"/properties/a": ""}),
        ({"enum": []}, {"/enum": "enum"}),
        ({"anyOf": []}, {"/anyOf": "anyOf"}),
        ({"multipleOf": 0}, {"/multipleOf": "multipleOf"}),
        ({"$ref": "#/$defs/none"}, {"/$ref": "$ref"}),
        ({"contains": {}, "propertyNames": {}}, {"/contains": "contains", "/propertyNames": "propertyNames"}),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"/properties/a/$ref": "$ref"}),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, {"/$defs/a/allOf/0/$ref": "$ref"}),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#/anyOf/0"}]}, {"/anyOf/0/$ref": "$ref", "/anyOf/1/$ref": "$ref"}),
        (False, {"": ""}),
        ([], {"": ""}),
        (3, {"": ""}),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_every_problem_is_named_with_its_pointer(schema: object, expected: dict[str, str]) -> None:
    assert problems(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {
            "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)} | {"d60": {}},
            "$ref": "#/$defs/d0",
        },
        {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"type": "integer"}}},
        {"$defs": {"a": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/a"}}]}}, "$ref": "#/$defs/a"},
    ],
)
def test_recursion_with_structure_is_fine(schema: object) -> None:
    assert json_native.schema_grammar(JsonValue(json.dumps(schema)), "j").start == "j"


def test_a_property_may_have_the_name_of_a_keyword() -> None:
    schema = {"properties": {"not": {"type": "integer"}, "if": {}}, "required": ["not"], "enum": [{"not": 1}]}
    assert accepts(JsonValue(json.dumps(schema)), '{"not": 1}')


@pytest.mark.parametrize("text", ["{", "", "NaN", '{"a": Infinity}', "\x00"])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InterlockError, match="not valid JSON"):
        json_native.schema_grammar(JsonValue(text), "j")


def test_a_deep_schema_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(InterlockError, match="nested 10001 deep") as caught:
        json_native.schema_grammar(JsonValue('{"items":' * 10_000 + "{}" + "}" * 10_000), "j")
    assert caught.value.code == "constraint_too_complex"


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    assert accepts(JsonValue(json.dumps({"const": "[{" * 200 + '"\\'})), json.dumps("[{" * 200 + '"\\'))


OBJECT = (
    '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array"}}, "required": ["a"]}'
)


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (JsonValue(OBJECT), '{"a": 1, "b": [1, 2]}', True),
        (JsonValue(OBJECT), '{"a":1}', False),
        (JsonValue(OBJECT), '{"a": 1, "c": 2}', False),
        (JsonValue(OBJECT, open_objects=True), '{"a": 1, "c": 2}', True),
        (JsonValue(OBJECT, item_separator=",", key_separator=":"), '{"a":1,"b":[1,2]}', True),
        (JsonValue(OBJECT, item_separator=",", key_separator=":"), '{"a": 1}', False),
        (JsonValue(OBJECT, flexible_whitespace=True), '{ "a" :\n 1,"b": [ ]\n}', True),
        (JsonValue(OBJECT, flexible_whitespace=True), '{"a":' + " " * 40 + "1}", False),
        (JsonValue('{"type": "object"}'), '{"x": {"y": null}}', True),
        (JsonValue("true"), "[1.5]", True),
        (JsonValue('{"type": "string", "uniqueItems": false, "x-guidance": {"lenient": true}}'), '"a"', True),
        (JsonValue('{"type": "string", "format": "iri"}'), '"anything"', True),
        (JsonValue('{"type": "string", "format": "date"}'), '"anything"', False),
    ],
)
def test_what_is_accepted(value: JsonValue, text: str, expected: bool) -> None:
    assert accepts(value, text) is expected


CLOSED = {"properties": {"a": {"type": "integer"}}, "type": "object"}
EXTRA = '{"a": 1, "z": 2}'


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"properties": {"o": CLOSED}, "type": "object"}, f'{{"o": {EXTRA}}}', False),
        ({"items": CLOSED, "type": "array"}, f"[{EXTRA}]", False),
        ({"anyOf": [CLOSED, {"type": "null"}]}, EXTRA, False),
        ({"$defs": {"o": CLOSED}, "$ref": "#/$defs/o"}, EXTRA, False),
        ({**CLOSED, "additionalProperties": {"type": "integer"}}, EXTRA, True),
        ({**CLOSED, "patternProperties": {"^z": {}}}, EXTRA, True),
        ({"allOf": [CLOSED, {"properties": {"z": {"type": "integer"}}, "required": ["z"]}]}, EXTRA, True),
        (
            {
                "$defs": {"o": CLOSED},
                "allOf": [{"$ref": "#/$defs/o"}, {"properties": {"z": {"type": "integer"}}, "required": ["z"]}],
            },
            EXTRA,
            True,
        ),
        ({**CLOSED, "anyOf": [{"required": ["a"]}, {"required": ["z"]}]}, EXTRA, True),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_objects_that_declare_properties_are_closed_where_nothing_merges_into_them(
    schema: object, text: str, expected: bool
) -> None:
    assert accepts(JsonValue(json.dumps(schema)), text) is expected


@pytest.mark.parametrize(
    ("schema", "message", "pointers"),
    [
        (
            {"properties": {"a": {"oneOf": [{}]}}},
            "oneOf constraints are not supported",
            ["/properties/a/oneOf"],
        ),
        ({"items": {"minProperties": 1}}, "min/maxProperties only supported when", ["/items/minProperties"]),
        (
            {"properties": {"a": {"pattern": "(?=a)"}, "b": {"pattern": "a"}}},
            "regex parse error:\n    (?=a)\n    ^^^\nerror: look-around",
            ["/properties/a/pattern"],
        ),
        ({"not": {}}, 'failed to compile JSON schema: Unimplemented keys: ["not"]', ["/not"]),
        ({}, "something else", [""]),
    ],
)
def test_words_of_the_native_compile_get_pointers(schema: object, message: str, pointers: list[str]) -> None:
    error = json_native.explain(JsonValue(json.dumps(schema)), message)
    assert [problem.pointer for problem in error.problems] == pointers
