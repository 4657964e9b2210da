"""JSON-Schema-Test-Suite: no wrong answer but the documented spelling of integers, and few refusals."""

from __future__ import annotations

import json

import pytest

from interlock.constraints.schema import SchemaOptions

# "integers are written without fraction"
SPELLING = {"a float with zero fractional part is an integer"}


def _remotes(folder):
    return {
        f"http://localhost:1234/{path.relative_to(folder).as_posix()}": json.loads(path.read_text())
        for path in folder.rglob("*.json")
    }


@pytest.mark.parametrize(("draft", "uri", "refused_at_most"), [
    ("draft2020-12", None, 0.05),
    ("draft7", "http://json-schema.org/draft-07/schema#", 0.05),
])  # fmt: skip
def test_required_part(draft, uri, refused_at_most, shared, language, refusal) -> None:
    suite = shared / "data" / "json-schema-suite"
    options = SchemaOptions(
        open_objects=True, property_order="any", documents=_remotes(suite / "remotes"), format_mode="annotation"
    )
    groups = refused = 0
    wrong = []
    for path in sorted((suite / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            groups += 1
            schema = group["schema"]
            if uri and isinstance(schema, dict):
                schema = {"$schema": uri, **schema}
            try:
                found = language(schema, options)
            except refusal as error:
                if "no document is valid" not in str(error):
                    refused += 1
                elif any(test["valid"] for test in group["tests"]):
                    wrong.append((path.name, group["description"], str(error)))
                continue
            for test in group["tests"]:
                text = json.dumps(test["data"], separators=(",", ":"), ensure_ascii=False)
                if found.accepts(text) != test["valid"] and test["description"] not in SPELLING:
                    wrong.append((path.name, group["description"], test["description"]))
    assert wrong == []
    assert refused <= refused_at_most * groups, f"{refused} of {groups}"
