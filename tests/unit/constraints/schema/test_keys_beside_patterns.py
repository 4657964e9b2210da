"""Keys that match no pattern: some of them are written twice, so that the engine sees that any text may begin one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

RARE = "\x7f"  # the end of the keys that are written twice


def text(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


@pytest.mark.parametrize(
    ("pattern", "document", "is_valid"),
    [
        ("^k[0-9]+$", {"k1": 1}, True),
        ("^k[0-9]+$", {"k1": "s"}, False),
        ("^k[0-9]+$", {"k1x": "s"}, True),
        ("^k[0-9]+$", {"k1x": 1}, False),
        ("^k[0-9]+$", {f"k1{RARE}": "s"}, True),
        ("^k[0-9]+$", {f"k1{RARE}": 1}, False),
        ("^k[0-9]+$", {RARE: "s", "a": True}, True),
        ("^k[0-9]+$", {"a": "s"}, False),
        (f"^k+{RARE}$", {f"kk{RARE}": 1}, True),
        (f"^k+{RARE}$", {f"kk{RARE}": "s"}, False),
        (f"^k+{RARE}?$", {f"k{RARE}": "s"}, False),
        ("^k", {f"k{RARE}": "s"}, False),
        ("^k", {f"k{RARE}": 1}, True),
    ],
)
def test_a_key_has_the_value_of_its_kind(
    language: Callable[..., Any], pattern: str, document: dict[str, Any], is_valid: bool
) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}},
        "patternProperties": {pattern: {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    }
    assert language(schema).accepts(text(document)) is is_valid


def test_keys_may_be_kept_apart_from_several_sets(language: Callable[..., Any]) -> None:
    schema = {
        "allOf": [
            {"properties": {"a": True}, "additionalProperties": {"type": "string"}},
            {"properties": {"b": {"type": "string"}}, "additionalProperties": {"maxLength": 1}},
        ]
    }
    accepts = language({"type": "object", **schema}).accepts
    assert accepts(text({"a": "x", "b": "long", "c": "y"}))
    assert not accepts(text({"c": "long"}))
    assert not accepts(text({"c": 1}))
