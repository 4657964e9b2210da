"""Nothing is ever ignored: every keyword beside every other one, and beside every two it can interact with, means what a
validator says it means, so that taking it away changes what is accepted, or the schema is refused.

The default run takes all pairs and a share of the triples, and of the pairs in older dialects; ``--full-oracle`` takes all.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from interlock.constraints.schema.dialects import Dialect
from interlock.constraints.schema.keywords import TABLE

FRAGMENTS: dict[str, dict[str, Any]] = {
    "type": {"type": ["string", "integer", "array", "object"]},
    "enum": {"enum": [1, 3, "a", "abc", "2024-02-30", [], [1], [1, 1], ["a", 1], {}, {"a": 1}, {"a": "x", "b": "y"}]},
    "const": {"const": {"a": 1, "b": 2}},
    "allOf": {"allOf": [{"not": {"type": "null"}}, {"not": {"const": [1, 2]}}]},
    "anyOf": {"anyOf": [{"type": ["integer", "array"]}, {"required": ["a"]}]},
    "oneOf": {"oneOf": [{"type": ["number", "object"]}, {"minLength": 2}, {"minimum": 5}]},
    "not": {"not": {"anyOf": [{"const": 2}, {"type": "string", "maxLength": 1}, {"type": "object", "required": ["c"]}]}},
    "if": {"if": {"type": "integer"}, "then": {"minimum": 2}},
    "then": {"if": {"type": ["array", "object"]}, "then": {"minItems": 1, "minProperties": 1}},
    "else": {"if": {"minItems": 1, "minProperties": 1}, "else": {"type": "object"}},
    "$ref": {"$ref": "#/$defs/r", "$defs": {"r": {"not": {"enum": [1, "a", [1], {"b": 1}]}}}},
    "$dynamicRef": {"$dynamicRef": "#d", "$defs": {"d": {"$dynamicAnchor": "d", "not": {"enum": [3, "b", ["a"], {}]}}}},
    "title": {"title": "t", "default": 1, "x-note": {"type": "null"}, "examples": [1]},
    "minLength": {"minLength": 2},
    "maxLength": {"maxLength": 2},
    "pattern": {"pattern": "^[^b]"},
    "format": {"format": "date"},
    "minimum": {"minimum": 2},
    "maximum": {"maximum": 2},
    "exclusiveMinimum": {"exclusiveMinimum": 1},
    "exclusiveMaximum": {"exclusiveMaximum": 3},
    "multipleOf": {"multipleOf": 1.5},
    "items": {"items": {"enum": [1, 2, "a", "b"]}},
    "prefixItems": {"prefixItems": [{"type": "integer"}]},
    "additionalItems": {"items": [True], "additionalItems": {"type": "integer"}},
    "minItems": {"minItems": 1},
    "maxItems": {"maxItems": 1},
    "contains": {"contains": {"type": "string"}},
    "minContains": {"contains": {"type": "integer"}, "minContains": 2},
    "maxContains": {"contains": {"const": 1}, "maxContains": 1},
    "uniqueItems": {"uniqueItems": True, "items": {"enum": [1, 2, "a"]}},
    "unevaluatedItems": {"unevaluatedItems": False},
    "properties": {"properties": {"a": {"type": "string"}}},
    "required": {"required": ["a"]},
    "additionalProperties": {"additionalProperties": {"type": "integer"}},
    "patternProperties": {"patternProperties": {"^a": {"type": "integer"}}},
    "propertyNames": {"propertyNames": {"maxLength": 1}},
    "minProperties": {"minProperties": 1},
    "maxProperties": {"maxProperties": 1},
    "dependentRequired": {"dependentRequired": {"a": ["b"]}},
    "dependentSchemas": {"dependentSchemas": {"b": {"properties": {"a": {"type": "integer"}}}}},
    "dependencies": {"dependencies": {"a": ["b"], "c": {"required": ["a"]}}},
    "unevaluatedProperties": {"unevaluatedProperties": {"type": "string"}},
}  # fmt: skip

DOCUMENTS: list[Any] = [
    None, True, 1, 2, 3, 5, 1.5, -3, "", "a", "b", "ab", "abc", "bcd", "2024-01-31", "2024-02-30",
    [], [1], [2], ["a"], [None], [1, 1], [1, 2], [2, 1], ["a", "b"], ["a", 1], [1, "a"], [1, 2, "a"], [1, "x", 1],
    {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"b": "y"}, {"ab": 1}, {"ab": "z"}, {"a": 1, "b": 2}, {"a": "x", "b": "y"},
    {"b": "y", "c": 2}, {"c": 3}, {"a": 1, "b": 2, "c": 3},
]  # fmt: skip
TEXTS = [json.dumps(document, separators=(",", ":")) for document in DOCUMENTS]

ANY_TYPE = tuple(FRAGMENTS)[:12]
BY_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "contains", "minContains",
              "maxContains", "uniqueItems", "unevaluatedItems"),
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
               "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
}  # fmt: skip
NUM_GROUPS = 8  # so that several processes share the work
SHARE = 12  # of the triples, one in so many is in the default run
OLD = {
    "additionalItems",
    "dependencies",
}  # held in every dialect, but a validator knows them up to draft 7 only
DIALECTS = {
    "draft 4": "http://json-schema.org/draft-04/schema#",
    "draft 6": "http://json-schema.org/draft-06/schema#",
    "draft 7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
}
OLD_DIALECT = DIALECTS["draft 7"]
ONLY_THERE: dict[str, dict[str, dict[str, Any]]] = {
    "draft 4": {
        "exclusiveMinimum": {"minimum": 1, "exclusiveMinimum": True},
        "exclusiveMaximum": {"maximum": 3, "exclusiveMaximum": True},
        "id": {"id": "urn:here", "allOf": [{"$ref": "urn:here#/definitions/r"}], "definitions": {"r": {"not": {"enum": [1, "a"]}}}},
    },
    "2019-09": {"$recursiveRef": {"items": {"$recursiveRef": "#"}}},
}  # fmt: skip
"""What is written otherwise in a dialect, or only in it."""
UNLIKE = {"2019-09": {"dependencies"}}
"""Held in a dialect, although a validator of that takes it for an annotation."""
NEW = {row.name for row in TABLE if row.since > Dialect.DRAFT7}


def _whole(names: tuple[str, ...], dialect: str = "") -> dict[str, Any] | None:
    """The fragments in one schema, ``None`` where they say different things about one keyword or are of different
    dialects. dialect: an older one, in which some keywords may be annotations."""
    if not dialect and OLD & set(names) and NEW & set(names):
        return None
    fragments = FRAGMENTS | ONLY_THERE.get(dialect, {})
    out: dict[str, Any] = {"$schema": DIALECTS[dialect]} if dialect else {}
    for name in names:
        for keyword, value in fragments[name].items():
            if keyword == "$defs":
                out["$defs"] = {**out.get("$defs", {}), **value}
            elif out.setdefault(keyword, value) != value:
                return None
    if not dialect and OLD & set(names):
        return {"$schema": OLD_DIALECT, **out}
    return out


def _combinations() -> Iterator[tuple[str, ...]]:
    """Single keywords and pairs; then triples that speak of one type."""
    for size in (1, 2):
        yield from itertools.combinations(FRAGMENTS, size)
    for own in BY_TYPE.values():
        for names in itertools.combinations((*own, *ANY_TYPE), 3):
            if set(names) & set(own):
                yield names


def _judged(schema: Any) -> list[bool]:
    kind: Any = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    validator = kind(schema, format_checker=jsonschema.FormatChecker())
    return [validator.is_valid(document) for document in DOCUMENTS]


def _disagreement(names: tuple[str, ...], language: Any, refusal: Any, dialect: str = "") -> str | None:
    """What of the documents is judged otherwise than by a validator; a refusal must name one of the keywords."""
    schema = _whole(names, dialect)
    if schema is None:
        return None
    meant = _judged(schema)
    try:
        found = language(schema)
    except refusal as error:
        is_empty = all("no document is valid" in problem.reason for problem in error.problems)
        named = {problem.keyword for problem in error.problems} <= set(schema)
        return None if (named and not is_empty) or (is_empty and not any(meant)) else f"{names}: {error}"
    wrong = [text for text, valid in zip(TEXTS, meant, strict=True) if found.takes(text) != valid]
    return f"{names}: {wrong}" if wrong else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "group" in metafunc.fixturenames:
        every = list(_combinations())
        shares = [every[start::NUM_GROUPS] for start in range(NUM_GROUPS)]
        if not metafunc.config.getoption("--full-oracle"):
            shares = [
                [names for index, names in enumerate(share) if len(names) < 3 or index % SHARE == 0]
                for share in shares
            ]
        metafunc.parametrize("group", shares, ids=[f"share {number}" for number in range(NUM_GROUPS)])


def test_keywords_together_mean_what_a_validator_says(group, language, refusal) -> None:
    assert [found for names in group if (found := _disagreement(names, language, refusal))] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_keywords_of_older_dialects_together_mean_what_a_validator_says(
    dialect, language, refusal, pytestconfig
) -> None:
    names = [name for name in FRAGMENTS | ONLY_THERE.get(dialect, {}) if name not in UNLIKE.get(dialect, ())]
    pairs = list(itertools.combinations(names, 2))
    own = [pair for pair in pairs if set(pair) & set(ONLY_THERE.get(dialect, {}))]
    share = pairs if pytestconfig.getoption("--full-oracle") else [*pairs[::SHARE], *own[::3]]
    tried = [(name,) for name in names] + share
    assert [found for one in tried if (found := _disagreement(one, language, refusal, dialect))] == []


@pytest.mark.parametrize("name", sorted(set(FRAGMENTS) - {"title"}))
def test_the_documents_tell_each_keyword_from_its_absence(name) -> None:
    beside = {"unevaluatedItems": "prefixItems", "unevaluatedProperties": "properties"}.get(name)
    whole = _whole((name, beside) if beside else (name,))
    without = {keyword: value for keyword, value in whole.items() if keyword != name}
    assert _judged(whole) != _judged(without)


def test_every_keyword_has_a_fragment() -> None:
    enforced = {row.name for row in TABLE if row.holder in ("grammar", "guard") or row.name.endswith("Ref")}
    assert enforced - set(FRAGMENTS) == {"nullable", "$recursiveRef"}
    assert "$recursiveRef" in ONLY_THERE["2019-09"]
