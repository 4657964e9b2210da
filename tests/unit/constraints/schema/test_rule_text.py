"""Keys and strings stand in the rules themselves: no name may be taken for a part of the grammar."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

NAMES = [
    "@p@",
    "@t@::_",
    "a | b",
    " %if true",
    "j_r1",
    "J_T0",
    '"',
    "\\",
    "/x/",
    "\\u0041",
    "\n",
    "é",
    "%json {}",
    "::set_bit(0)",
    "price (USD)",
    "a.b[0]*",
    "^a|.+?$",
    'q"uote\\',
    "{0}",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_a_key(language, name: str) -> None:
    schema = {
        "properties": {name: {"const": 1}, "k": {"const": name}},
        "required": [name],
        "additionalProperties": False,
    }
    found = language(schema)
    assert found.accepts(json.dumps({name: 1}, separators=(",", ":"), ensure_ascii=False))
    assert found.accepts(json.dumps({"k": name, name: 1}, separators=(",", ":"), ensure_ascii=False))
    assert not found.accepts("{}")
    assert not found.accepts(json.dumps({f"{name}x": 1}, separators=(",", ":"), ensure_ascii=False))


def test_rules_that_are_only_another_name_are_left_out(language) -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}}
    rules = [line.partition(": ")[2] for line in language(schema).lark.splitlines()[1:]]
    assert not [body for body in rules if re.fullmatch(r"j_r\d+", body)]


@pytest.mark.parametrize("schema", [
    {"properties": {"a": {"properties": {"b": {}}}, "c": {"properties": {"b": {}}}}},
    {"$defs": {"n": {"properties": {"a": {}, "n": {"$ref": "#/$defs/n"}}}}, "items": {"$ref": "#/$defs/n"}},
    {"properties": {"a": {"items": {"type": "integer"}}, "c": {"items": {"type": "integer"}, "minItems": 0}}},
])  # fmt: skip
def test_every_rule_that_is_named_is_there_once(schema, language) -> None:
    lines = [line for line in language(schema).lark.splitlines() if line.startswith("j_r")]
    defined = [re.match(r"j_r\d+", line)[0] for line in lines]
    assert len(defined) == len(set(defined))
    assert {name for line in lines for name in re.findall(r"\bj_r\d+", line)} <= set(defined)


def test_any_text_in_several_terminals_is_written_once(language) -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"properties": {"c": {"type": "string"}}}}}
    found = language(schema)
    assert found.lark.count("d[8-9a-b]") == 1
    assert found.accepts('{"a":"\\u0000","x":"a","b":{"c":"x","a":1}}')
    assert not found.accepts('{"a":1}')
    assert not found.accepts('{"b":{"c":1}}')


def test_counted_words_are_written_without_escapes_beyond_ascii(language) -> None:
    counted = language({"type": "string", "pattern": r"^(?:\S+\s+){0,99}\S+$"})
    assert counted.accepts(json.dumps("é 1 2", ensure_ascii=False))
    assert not counted.accepts(json.dumps("é"))
    assert not counted.accepts(json.dumps(" ".join("a" * 101)))
    assert language({"type": "string", "pattern": r"^\S+$"}).accepts(json.dumps("é"))


@pytest.mark.parametrize("schema", [
    {},
    {"properties": {"é": {"type": "integer"}, "😀": {"type": "integer"}}, "required": ["é"]},
    {"patternProperties": {"^[а-я]+$": {"type": "integer"}}},
    {"properties": {"é": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"propertyNames": {"minLength": 2}},
])  # fmt: skip
def test_keys_beyond_ascii_may_be_written_with_escapes(schema, language) -> None:
    found, validator = language(schema), jsonschema.Draft202012Validator(schema)
    for document in ({"é": 1}, {"é": "x"}, {"é": 1, "😀": 2}, {"да": 1}, {"да": "x"}, {"éé": "x"}):
        for ascii_only in (True, False):
            text = json.dumps(document, separators=(",", ":"), ensure_ascii=ascii_only)
            assert found.accepts(text) == validator.is_valid(document), text
    if "é" in schema.get("properties", {}):
        assert not found.accepts('{"é":1,"\\u00e9":2}')  # the same key again
