"""Random walks over real schemas: the same seed walks alike, and what is not valid is found."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from interlock.constraints.providers.llguidance_tokenizer import native_tokenizer
from interlock.constraints.schema import SchemaOptions
from interlock.tokenization.byte_tokenizer import byte_tokenizer

SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}, "required": ["a"]},
    {"type": "array", "uniqueItems": True, "items": {"enum": [{"k": 1}, {"k": 2}, "x"]}, "minItems": 3},
    {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1},
]
CASES = [{"id": str(number), "schema": schema} for number, schema in enumerate(SCHEMAS)]


@pytest.fixture
def walks(root: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    return importlib.import_module("walks")


def found(walks: Any, seed: str, compiler: type | None = None) -> Any:
    tokenizer = native_tokenizer(byte_tokenizer())
    interlock = (compiler or walks.Interlock)(tokenizer, SchemaOptions(guards=True))
    run = walks.Run(interlock, walks.Walker(walks.guard_vocabulary(tokenizer), 60), seed)
    for case in CASES:
        run.schema("cases", case)
    return run.found


def test_every_manner_gives_valid_documents_and_a_seed_the_same_ones(walks: Any) -> None:
    first, again, other = found(walks, "1"), found(walks, "1"), found(walks, "2")
    assert first == again
    assert first != other
    assert first.valid == first.documents == len(CASES) * len(walks.MANNERS)


def test_documents_of_a_compiler_that_weakens_schemas_are_told(walks: Any) -> None:
    class Weak(walks.Interlock):  # type: ignore[misc]
        def compile(self, schema: Any) -> Any:
            return super().compile({"type": schema["type"]})

    told = found(walks, "1", Weak)
    assert told.lists["invalid"]
    assert {entry["id"] for entry in told.lists["invalid"]} <= {case["id"] for case in CASES}
    assert all(entry["why"] and entry["text"] for entry in told.lists["invalid"])


@pytest.mark.parametrize(
    ("schema", "text", "answer"),
    [
        ({"type": "integer"}, "3", "valid"),
        ({"type": "integer"}, "3.5", "invalid"),
        ({"type": "integer"}, "3 4", "invalid"),
        ({"multipleOf": 0.5}, "4.5", "valid"),
        ({"multipleOf": 0.01}, "4.35", "disputed"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"multipleOf": 0.1, "nullable": True}}}, "0.3", "rounded"),
        ({"type": "object"}, '{"a": 1, "b": 2, "a": 3}', "repeated"),
        ({"properties": {"a": {"type": "string"}}}, '{"a": "x", "a": 3}', "invalid"),
        ({"format": "date"}, '"2024-02-30"', "disputed"),
        ({"type": "string", "nullable": True}, "null", "valid"),
        ({"pattern": "\\p{Lu}"}, '"A"', "unjudged"),
    ],
)
def test_the_oracle(schema: Any, text: str, answer: str, walks: Any) -> None:
    assert walks.Oracle(schema, assert_formats=True).judge(text).answer == answer
