"""Closed objects, order, spacing: whatever the policies do, only valid documents come out."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from interlock.constraints.schema import SchemaOptions, schema_grammar
from interlock.core.constraint import JsonValue
from interlock.errors import InterlockError

AB: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["b"],
}
CLOSED = SchemaOptions()
ANY_ORDER = SchemaOptions(property_order="any")


def test_declared_properties_close_an_object(language) -> None:
    assert not language(AB, CLOSED).accepts('{"b":"x","c":1}')
    assert language(AB, SchemaOptions(open_objects=True)).accepts('{"b":"x","c":1}')
    assert language({**AB, "additionalProperties": True}, CLOSED).accepts('{"b":"x","c":1}')
    assert language({"type": "object"}, CLOSED).accepts('{"c":1}')


def test_a_merged_object_is_closed_once(language) -> None:
    schema = {
        "allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}],
        "type": "object",
    }
    found = language(schema, CLOSED)
    assert found.accepts('{"a":1,"b":2}')
    assert not found.accepts('{"a":1,"c":2}')


def test_closing_never_reaches_into_conditions(language) -> None:
    schema = {
        **AB,
        "properties": {**AB["properties"], "c": {}},
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"required": ["c"]},
    }
    found = language(schema, CLOSED)
    assert found.accepts('{"a":1,"b":"","c":0}')
    assert not found.accepts('{"a":1,"b":""}')
    assert found.accepts('{"a":2,"b":""}')


def test_an_object_stays_open_where_closing_would_leave_nothing(language) -> None:
    assert language({"properties": {"a": True}, "type": "object", "minProperties": 2}, CLOSED).accepts(
        '{"a":1,"b":2}'
    )


@pytest.mark.parametrize(("more", "closed", "open_"), [
    ({"not": {"const": {"a": 1}}}, ['{"a":2}'], ['{"a":1,"x":0}']),
    ({"not": {"enum": [{"a": 1}, {"a": 2}]}}, ['{"a":1,"x":0}'], []),  # nothing is left but undeclared keys
    ({"oneOf": [{"const": {"a": 1}}, {"minProperties": 1}]}, ['{"a":2}'], ['{"a":1,"x":0}']),
])  # fmt: skip
def test_what_is_possible_with_undeclared_keys_alone_is_left_out_beside_other_values(
    more, closed, open_, language
) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], **more}
    found, exact = language(schema, CLOSED), language(schema, SchemaOptions(open_objects=True))
    assert all(map(found.accepts, closed))
    assert not any(map(found.accepts, open_))
    assert all(map(exact.accepts, [*closed, *open_]))


def test_required_undeclared_names_stay_possible(language) -> None:
    assert language({"type": "object", "properties": {"b": {}}, "required": ["a"]}, CLOSED).accepts(
        '{"b":1,"a":1}'
    )


@pytest.mark.parametrize("value", [False, {"enum": []}, {"type": "string", "const": 1}])
@pytest.mark.parametrize("options", [CLOSED, SchemaOptions(open_objects=True, property_order="any")])
def test_an_optional_key_that_can_have_no_value_is_never_begun(options, value, language) -> None:
    found = language({"type": "object", "properties": {"x": value}}, options)
    assert found.accepts("{}")
    for wrong in ('{"x":', '{"x":}', '{"x":""}', '{"x":1}', '{"x":null}'):
        assert not found.accepts(wrong)
    if options.open_objects:
        assert b'"' not in found.next_bytes('{"x')
    else:
        assert found.next_bytes("{") == b"}"


@pytest.mark.parametrize(("order", "closes"), [("any", True), ("declared", False)])
@pytest.mark.parametrize("open_objects", [False, True])
def test_a_declared_name_after_a_later_one_can_be_closed_or_goes_on_as_another(
    order, closes, open_objects, language
) -> None:
    """Never is an escape the only way on."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    found = language(
        {**schema, "additionalProperties": True}, SchemaOptions(open_objects=open_objects, property_order=order)
    )
    following = found.next_bytes('{"b":1,"a')
    assert (b'"' in following) is closes
    assert set(b"abz_09 ") <= set(following)
    assert found.accepts('{"b":1,"a":2}') is closes
    assert not found.accepts('{"b":1,"a":"x"}')
    assert found.accepts('{"b":1,"ab":"x"}')


def test_order(language) -> None:
    assert not language(AB, CLOSED).accepts('{"b":"x","a":1}')
    assert language(AB, ANY_ORDER).accepts('{"b":"x","a":1}')
    assert language(AB, ANY_ORDER).accepts('{"a":1,"b":"x"}')
    for options in (CLOSED, ANY_ORDER):
        assert not language(AB, options).accepts('{"b":"x","b":"y"}')


def test_three_hundred_properties_in_any_order(language) -> None:
    names = [f"key{index}" for index in range(300)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names[:30],
    }
    found = language(schema, ANY_ORDER)
    shuffled = random.Random(1).sample(names[:60], 60)
    assert found.accepts(json.dumps(dict.fromkeys(shuffled, 1), separators=(",", ":")))
    assert not found.accepts(json.dumps(dict.fromkeys(names[1:60], 1), separators=(",", ":")))


def test_spacing_is_what_the_value_says() -> None:
    compact = schema_grammar(JsonValue(json.dumps(AB), item_separator=",", key_separator=":"), "x")
    spaced = schema_grammar(JsonValue(json.dumps(AB)), "x")
    assert '", "' in spaced.lark
    assert '", "' not in compact.lark
    assert all(line.startswith(("x_", "X_")) for line in spaced.lark.splitlines())


def test_flexible_whitespace_is_bounded(terminal) -> None:
    from interlock.constraints.schema import json_syntax

    comma = terminal(json_syntax(", ", ": ", flexible=True).item_separator)
    assert comma.accepts(" ,\n  ")
    assert not comma.accepts("," + " " * 100)


def test_the_error_names_tool_keyword_and_pointer() -> None:
    schema = {"properties": {"a": {"pattern": "("}, "b": {"type": "foo"}}}
    with pytest.raises(InterlockError) as caught:
        schema_grammar(JsonValue(json.dumps(schema), tool="look", origin="tools[0].function.parameters"), "x")
    assert caught.value.code == "invalid_schema"
    assert {(item.keyword, item.pointer, item.tool) for item in caught.value.problems} == {
        ("pattern", "/properties/a/pattern", "look"),
        ("type", "/properties/b/type", "look"),
    }
    assert caught.value.param == "tools[0].function.parameters"


@pytest.mark.parametrize("text", ['{"enum": ["\\ud800"]}', "{", '{"minimum": NaN}', "[" * 5000, '"x"', "3"])
def test_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(InterlockError):
        schema_grammar(JsonValue(text), "x")


def test_generated_documents_are_valid_under_every_policy(language) -> None:
    chooser = random.Random(3)
    for options in (CLOSED, ANY_ORDER, SchemaOptions(open_objects=True)):
        found = language(AB, options)
        for _ in range(10):
            text = found.walk(chooser)
            if text is not None:
                jsonschema.validate(json.loads(text), AB)
