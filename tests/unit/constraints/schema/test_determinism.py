"""The same schema gives the same grammar in every process: caches and logs in several processes must agree."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SCRIPT = """
import hashlib, json, sys
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax, load_schema
syntax = json_syntax(",", ":", flexible=False)
for line in sys.stdin:
    for order in ("declared", "any"):
        options = SchemaOptions(property_order=order, guards=True)
        found = compile_schema(load_schema(line), options, syntax, "j")
        guards = found.guards and found.guards.to_json()
        text = repr((found.start, found.lark, guards, found.problems, found.report.notes()))
        print(hashlib.sha256(text.encode()).hexdigest())
"""
_PAIR = {"properties": {"a": {}, "b": {"type": "string"}, "c": {"type": "integer"}}}


def _variant(name: str, **properties: Any) -> Any:
    return {
        "properties": {"kind": {"enum": [name]}, **properties},
        "required": ["kind"],
        "additionalProperties": False,
    }


_TABLE: list[Any] = [
    {  # choices between the same keys that differ in the values alone
        "oneOf": [
            _variant("a", d={"type": "string"}, v={"const": 1}),
            _variant("b", d={"type": ["number", "string"]}, v={"const": 2}),
            _variant("c", d={"maxLength": 9}, v={"type": "string"}),
            {"properties": {"kind": {"type": "string"}, "d": {"maxLength": 5}, "v": {"minimum": 4}}},
            {"properties": {"d": {"minLength": 5}, "v": {"minimum": 3}}},
        ]
    },
    {**_PAIR, "anyOf": [{"required": ["a", "b"]}, {"required": ["c"]}, {"required": ["b", "c"]}]},
    {**_PAIR, "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]},
    {**_PAIR, "dependentRequired": {"a": ["b"], "b": ["c"], "c": ["a"]}},
    {**_PAIR, "not": {"required": ["a", "b", "c"]}, "minProperties": 2},
    {"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}, "c": {"maximum": 9}}},
    {
        "allOf": [
            {"patternProperties": {"^x": {}, "y$": {}}, "additionalProperties": False},
            {"patternProperties": {"z": {"type": "null"}, "q": True}, "additionalProperties": {"minLength": 2}},
        ]
    },
    {"not": {"additionalProperties": {"type": "string"}, "patternProperties": {"^a": {"type": "integer"}}}},
    {
        "properties": {"a": {}},
        "unevaluatedProperties": False,
        "anyOf": [_PAIR, {"patternProperties": {"^z": {}}}],
    },
    {"type": "string", "pattern": "^[a-z]+$", "not": {"enum": ["if", "else", "for"]}, "minLength": 2},
    {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}, {"not": {"pattern": "c|d+|e{3}"}}]},
    {"type": "integer", "anyOf": [{"multipleOf": 3}, {"multipleOf": 7, "minimum": 9}, {"maximum": -4}]},
    {"type": "number", "not": {"anyOf": [{"multipleOf": 3}, {"multipleOf": 0.5}]}, "exclusiveMinimum": 1.5},
    {"type": "array", "items": {"enum": ["x", None, 2, True]}, "uniqueItems": True},
    {"contains": {"type": "string"}, "allOf": [{"contains": {"const": 1}}], "uniqueItems": True},
]


def _sample(shared: Path) -> Iterator[Any]:
    for path in sorted((shared / "data" / "maskbench").glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for index, line in enumerate(lines):
                if index == 400:
                    break
                if index % 100 == 7 and len(line) < 20_000:
                    yield json.loads(line)["schema"]


def _digests(schemas: list[Any], seed: str) -> list[str]:
    found = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input="\n".join(map(json.dumps, schemas)),
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return found.stdout.split()


def _differing(schemas: list[Any]) -> list[Any]:
    found = [_digests(schemas, seed) for seed in ("1", "2", "4")]
    assert {len(digests) for digests in found} == {2 * len(schemas)}
    rows = enumerate(zip(*found, strict=True))
    return [schemas[index // 2] for index, row in rows if len(set(row)) > 1]


def test_hash_seeds_do_not_change_a_grammar() -> None:
    assert _differing(_TABLE) == []


def test_hash_seeds_do_not_change_the_grammars_of_real_schemas(shared: Path) -> None:
    assert _differing(list(_sample(shared))) == []
