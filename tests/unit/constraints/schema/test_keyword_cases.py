"""The public keyword cases and field reports: right, or refused by name."""

from __future__ import annotations

import json

import pytest

from interlock.constraints.schema import SchemaOptions

REFUSED = {"pattern backref", "uniqueItems", "$ref remote", "$ref metaschema"}


def _cases(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_keyword_cases(shared, language, refusal) -> None:
    wrong = []
    for case in _cases(shared / "cases" / "keyword_cases.jsonl"):
        name = case["keyword"]
        try:
            found = language(case["schema"])
        except refusal:
            if name not in REFUSED:
                wrong.append((name, "refused"))
            continue
        texts = [json.dumps(item, separators=(",", ":")) for item in case["valid"]]
        wrong += [(name, f"valid rejected: {text}") for text in texts if not found.accepts(text)]
        for item in case["invalid"]:
            text = json.dumps(item, separators=(",", ":"))
            if found.accepts(text):
                wrong.append((name, f"invalid accepted: {text}"))
    assert wrong == []


def test_field_reports_about_grammars(shared, language, refusal) -> None:
    wrong = []
    for report in _cases(shared / "cases" / "field_reports.jsonl"):
        given = report["input"]
        if given.get("kind") != "grammar":
            continue
        checks = given.get("checks") or []
        if "schema" in given and "must_accept" in given:
            checks = [(given["schema"], given["must_accept"], given.get("must_reject", []))]
        for schema, accept, reject in checks:
            try:
                found = language(schema)
            except refusal as error:
                wrong.append((report["id"], str(error)))
                continue
            wrong += [
                (report["id"], text)
                for text in accept
                if not text.startswith("a JSON") and not found.accepts(text)
            ]
            wrong += [
                (report["id"], text) for text in reject if not text.startswith("a JSON") and found.accepts(text)
            ]
    assert wrong == []


@pytest.mark.parametrize("keyword", ["const", "enum", "default", "examples", "x-note"])
def test_data_that_looks_like_a_schema_is_data(keyword, language) -> None:
    data = {
        "$ref": "nowhere",
        "$id": "x",
        "type": "foo",
        "pattern": "(",
        "uniqueItems": True,
        "items": {"$ref": "#/no"},
    }
    value = {keyword: [data] if keyword in ("enum", "examples") else data}
    found = language({"type": "object", "properties": {"k": value}, "required": ["k"]}, SchemaOptions())
    assert found.accepts(json.dumps({"k": data}, separators=(",", ":")))
    assert found.accepts('{"k":1}') is (keyword not in ("const", "enum"))


@pytest.mark.parametrize("size", [2000, 2001])
def test_numbers_of_items_are_counted(size, language) -> None:
    bounded = {"type": "array", "items": {"type": "null"}, "maxItems": size}
    for schema, wrap in ((bounded, "{}"), ({"properties": {"a": bounded}, "type": "object"}, '{{"a":{}}}')):
        found = language(schema, SchemaOptions())
        texts = ["[" + ",".join(["null"] * count) + "]" for count in (size, size + 1)]
        assert [found.takes(wrap.format(text)) for text in texts] == [True, False]


@pytest.mark.parametrize("size", [1999, 2000, 2001, 5000])
def test_length_bounds_are_counted(size, language) -> None:
    for schema, wrap in (
        ({"type": "string", "maxLength": size}, '"{}"'),
        ({"type": "object", "properties": {"a": {"type": "string", "maxLength": size}}}, '{{"a":"{}"}}'),
        ({"type": "array", "items": {"type": "string", "maxLength": size}}, '["{}"]'),
    ):
        found = language(schema, SchemaOptions())
        assert found.accepts(wrap.format("x" * size))
        assert not found.accepts(wrap.format("x" * (size + 1)))
