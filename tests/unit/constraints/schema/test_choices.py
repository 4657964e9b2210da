"""Alternatives of objects that are kept as choices mean what they mean multiplied out."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.constraints.schema.algebra import object_keywords
from interlock.constraints.schema.guards.reading import feed
from interlock.constraints.schema.guards.scan import RepetitionError, State

KEYS = ["a", "b", "c", "d"]
VALUES: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"const": 1},
    {"enum": ["x", "y", 1]},
    {"enum": ["y", 2]},
    {"type": "integer", "minimum": 2},
    True,
    {"type": ["integer", "null"]},
    {"type": "string", "maxLength": 1},
]


class Maker:
    def __init__(self, seed: int) -> None:
        self.chooser = random.Random(seed)

    def part(self) -> dict[str, Any]:
        pick = self.chooser
        out: dict[str, Any] = {
            "properties": {key: pick.choice(VALUES) for key in pick.sample(KEYS, pick.randint(1, 3))}
        }
        if pick.random() < 0.7:
            out["required"] = pick.sample(KEYS, pick.randint(1, 2))
        if pick.random() < 0.2:
            out["additionalProperties"] = False
        if pick.random() < 0.1:
            out["maxProperties"] = pick.randint(1, 3)
        return out

    def schema(self) -> dict[str, Any]:
        pick = self.chooser
        parts = [self.part() for _ in range(pick.randint(2, 4))]
        kind = pick.choice(["oneOf", "not anyOf", "nots"])
        if kind == "oneOf":
            out: dict[str, Any] = {"oneOf": parts}
        elif kind == "not anyOf":
            out = {"not": {"anyOf": parts}}
        else:
            out = {"allOf": [{"not": part} for part in parts]}
        return {**out, **(self.part() if pick.random() < 0.4 else {}), "type": "object"}

    def document(self) -> dict[str, Any]:
        pick = self.chooser
        names = pick.sample([*KEYS, "e"], pick.randint(0, 4))
        return {name: pick.choice([1, 2, 3, "x", "y", "zz", None]) for name in names}


@pytest.mark.parametrize("order", ["any", "declared"])
def test_choices_are_exact_and_have_no_dead_ends(order, language, refusal, monkeypatch) -> None:
    monkeypatch.setattr(object_keywords, "MAX_MULTIPLIED", 1)
    maker = Maker(7)
    options = SchemaOptions(open_objects=True, property_order=order)
    num_compiled = 0
    for _ in range(30):
        schema = maker.schema()
        validator = jsonschema.Draft202012Validator(schema)
        documents = [maker.document() for _ in range(12)]
        try:
            found = language(schema, options)
        except refusal as error:
            if "no document is valid" in str(error):
                assert not any(map(validator.is_valid, documents)), json.dumps(schema)
            continue
        num_compiled += 1
        for document in documents:
            valid, text = validator.is_valid(document), json.dumps(document, separators=(",", ":"))
            accepted = found.accepts(text)
            assert valid or not accepted, f"{json.dumps(schema)} accepts {text}"
            # without guards a witness among undeclared keys and a count of them narrow what is written
            wide = "additionalProperties" in json.dumps(schema) or "Properties" in json.dumps(schema)
            assert accepted or not valid or order == "declared" or wide, f"{json.dumps(schema)} rejects {text}"
        for _ in range(2):
            generated = found.walk(maker.chooser)
            if generated is not None:
                assert validator.is_valid(json.loads(generated)), f"{json.dumps(schema)} generates {generated}"
    assert num_compiled > 20


def test_exactly_one_of_many_overlapping_objects_is_compiled(language) -> None:
    names = [f"k{number}" for number in range(20)]
    parts = [
        {"properties": {name: {"type": "integer"}, "kind": {"enum": [name, "any"]}, "n": {"minimum": 3}}}
        for name in names
    ]
    found = language({"type": "object", "oneOf": parts})
    assert found.accepts('{"kind":"k3"}')
    assert found.accepts('{"k4":1,"kind":"k3","n":5}')
    for wrong in ('{"kind":"any"}', '{"k3":"x","kind":"k3"}', '{"kind":"k3","n":1}', "{}"):
        assert not found.accepts(wrong), wrong


@pytest.mark.parametrize(("document", "accepted"), [
    ({"a": "x", "b": 2}, True),
    ({"a": 1, "b": 2}, False),
    ({"a": 1, "b": "x"}, True),
    ({"b": 2, "a": "x"}, True),
    ({}, False),
    ({"a": "x", "b": 2, "c": 3}, False),
])  # fmt: skip
def test_a_count_leaves_room_for_what_must_be_shown(document, accepted, language) -> None:
    """A third key would leave no place for the one that is not an integer."""
    schema = {"maxProperties": 2, "not": {"additionalProperties": {"type": "integer"}}, "type": "object"}
    found = language(schema, SchemaOptions(open_objects=True, property_order="any", guards=True))
    assert found.accepts(json.dumps(document, separators=(",", ":"))) == accepted
    chooser = random.Random(5)
    for _ in range(5):
        text = found.walk(chooser)
        assert text is None or jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), text


def test_what_must_be_shown_is_guarded_too() -> None:
    """The only array that makes the object valid has no repetition."""
    unique = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    schema = {"type": "object", "not": {"additionalProperties": {"not": unique}}}
    options = SchemaOptions(open_objects=True, property_order="any", guards=True)
    plan = compile_schema(schema, options, json_syntax(",", ":", flexible=False), "j").guards
    assert plan is not None
    feed(plan, State(), b'{"x":["a","b"]}')
    with pytest.raises(RepetitionError):
        feed(plan, State(), b'{"x":["a","a"]}')


def test_in_declared_order_no_key_passes_over_the_last_one_that_can_show_something(language) -> None:
    """Beside a and b there must be c, which comes before a."""
    parts = {
        "properties": {"b": {"type": "string"}, "c": {"type": "integer"}, "a": {"type": "integer"}},
        "required": ["a"],
    }
    schema = {
        **parts,
        "type": "object",
        "not": {"properties": {"a": True, "b": True}, "additionalProperties": False},
    }
    found, chooser = language(schema, SchemaOptions(guards=True)), random.Random(3)
    assert found.next_bytes('{"b":"",') == b'"'
    assert not found.accepts('{"b":"","a":1}')
    assert found.accepts('{"b":"","c":2,"a":1}')
    for _ in range(40):
        text = found.walk(chooser)
        assert text is None or jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), text
