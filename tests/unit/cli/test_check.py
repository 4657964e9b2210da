from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from interlock.cli.main import main
from interlock.constraints.explain import Place

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 3},
        "b": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "c": {"format": "phone", "title": "C"},
    },
    "required": ["a"],
}


def check(folder: Path, schema: Any, *instances: str, options: tuple[str, ...] = (), exit_code: int = 0) -> Any:
    (folder / "schema.json").write_text(json.dumps(schema))
    arguments = ["check", str(folder / "schema.json"), "--json", *options]
    for index, text in enumerate(instances):
        (folder / f"{index}.json").write_text(text)
        arguments += ["--instance", str(folder / f"{index}.json")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def test_every_keyword_has_a_state(tmp_path: Path) -> None:
    found = check(tmp_path, SCHEMA)
    states = {row["pointer"]: row["state"] for row in found["report"]}
    assert states["/properties/b/uniqueItems"] == "guard"
    assert states["/properties/a/minimum"] == "grammar"
    assert states["/properties/c/format"] == "annotation"
    assert found["compiled"]
    assert found["grammar_chars"] > 0
    assert found["compile_ms"] > 0


def test_the_sample_is_valid(tmp_path: Path) -> None:
    jsonschema.validate(json.loads(check(tmp_path, SCHEMA)["sample"]), SCHEMA)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ('{\n  "a": 4,\n  "b": ["x", "x"]}', 27, "non-unique"),
        ('{"b": []}', 2, "'a' is a required property"),
        ('{"a": 2}', 7, "less than the minimum"),
        ('{"a": 4, "z": 1}', 10, "undeclared keys (open_objects would do)"),
        ('{"a": 4', 7, "not JSON"),
    ],
)
def test_an_instance_stops_at_a_place_for_a_reason(
    tmp_path: Path, text: str, position: int, reason: str
) -> None:
    (found,) = check(tmp_path, SCHEMA, text, exit_code=1)["instances"]
    assert not found["accepted"]
    assert found["position"] == position
    assert reason in found["reason"]


@pytest.mark.parametrize("text", ['{"a": 4}', '{\n\t"a" : 4 ,"b":[ ]\n}\n', '{"a": 4.0}', '{"\\u0061": 4}'])
def test_a_document_is_accepted_in_any_spelling(tmp_path: Path, text: str) -> None:
    (found,) = check(tmp_path, SCHEMA, text)["instances"]
    assert found["accepted"]
    assert found["position"] is None


def test_an_integer_with_a_fraction_is_accepted_and_the_rule_is_told(tmp_path: Path) -> None:
    (found,) = check(tmp_path, SCHEMA, '{"a": 4.0}')["instances"]
    assert found["reason"] == (
        'in this spelling: {"a": 4} (it differs from character 7 on: integers are written without fraction)'
    )


def test_policies_are_options(tmp_path: Path) -> None:
    text = '{"c": 1, "z": 1, "a": 4}'
    check(tmp_path, SCHEMA, text, exit_code=1)
    check(tmp_path, SCHEMA, text, options=("--order", "any", "--open-objects"))


def test_all_problems_of_a_refused_schema_are_listed(tmp_path: Path) -> None:
    found = check(tmp_path, {"allOf": [{"minLength": -1}, {"pattern": "(?<=a)b"}]}, exit_code=1)
    assert not found["compiled"]
    refused = {row["pointer"] for row in found["report"] if row["state"] == "refused"}
    assert refused == {"/allOf/0/minLength", "/allOf/1/pattern"}


def test_instances_of_a_refused_schema_have_their_lines(tmp_path: Path) -> None:
    found = check(tmp_path, {"pattern": "(?<=a)b"}, '"b"', "1", exit_code=1)
    assert [(item["accepted"], item["reason"]) for item in found["instances"]] == [
        (False, "the schema is refused")
    ] * 2
    shown = (
        CliRunner()
        .invoke(main, ["check", str(tmp_path / "schema.json"), "--instance", str(tmp_path / "0.json")])
        .output
    )
    assert "0.json: stops at character 0: the schema is refused" in " ".join(shown.split("\n"))


def test_the_table_is_for_people(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    shown = CliRunner().invoke(main, ["check", str(tmp_path / "schema.json")]).output
    assert "uniqueItems" in shown
    assert "sample: " in shown


@pytest.mark.parametrize(
    ("prefix", "pointer"),
    [
        ("", ""),
        ("{", ""),
        ('{"a~/', ""),
        ('{"a/": [1, ', "/a~1/1"),
        ('{"a": {"b": 1', "/a/b"),
        ('[{"x": []}, 2', "/1"),
    ],
)
def test_the_place_of_a_prefix(prefix: str, pointer: str) -> None:
    assert Place(prefix, len(prefix)).pointer == pointer


def test_documents_are_given_beforehand(tmp_path: Path) -> None:
    (tmp_path / "zip.json").write_text('{"type": "string", "maxLength": 3}')
    schema = {"$ref": "http://example.com/zip"}
    refused = check(tmp_path, schema, exit_code=1)
    assert "http://example.com/zip" in refused["report"][-1]["reason"]
    given = ("--document", f"http://example.com/zip={tmp_path / 'zip.json'}")
    assert check(tmp_path, schema, '"123"', options=given)["instances"][0]["accepted"]
    check(tmp_path, schema, '"1234"', options=given, exit_code=1)


@pytest.mark.parametrize("text", ["nothing", "=x", "http://example.com/x=/no/such/file"])
def test_a_document_that_is_none_is_an_error_of_usage(tmp_path: Path, text: str) -> None:
    (tmp_path / "schema.json").write_text("{}")
    result = CliRunner().invoke(main, ["check", str(tmp_path / "schema.json"), "--document", text])
    assert result.exit_code == 2


def test_a_relaxed_schema_names_what_is_left_out(tmp_path: Path) -> None:
    schema = {"type": "string", "pattern": "(?<=x)y"}
    found = check(tmp_path, schema, options=("--schema-mode", "relaxed"))
    assert {row["keyword"]: row["state"] for row in found["report"]}["pattern"] == "unenforced"


def test_rows_are_in_the_order_of_the_schema_and_each_keyword_has_one(tmp_path: Path) -> None:
    schema = {"properties": {"a": {"$ref": "http://x.y/z"}, "b": {"minLength": -1}, "c": {"pattern": "(a)\\1"}}}
    rows = [(row["pointer"], row["state"]) for row in check(tmp_path, schema, exit_code=1)["report"]]
    assert rows == [
        ("/properties", "grammar"),
        ("/properties/a/$ref", "refused"),
        ("/properties/b/minLength", "refused"),
        ("/properties/c/pattern", "refused"),
    ]
