from __future__ import annotations

from pathlib import Path

import pytest

from interlock.config import SchemaLimits
from interlock.constraints import bounds
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax
from interlock.errors import InterlockError

SETTABLE = [bound for bound in bounds.bounds() if bound.option != "fixed"]


def test_the_table_of_bounds_in_the_docs_is_current(root: Path) -> None:
    page = (root / "docs" / "json-schema.md").read_text()
    assert bounds.with_table(page) == page, "regenerate it with interlock.constraints.bounds.with_table"


@pytest.mark.parametrize("bound", SETTABLE, ids=lambda bound: bound.option)
def test_an_option_that_sets_a_bound_is_documented_with_its_default(root: Path, bound: bounds.Bound) -> None:
    page = (root / "docs" / "configuration.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {bound.option[:-1]} ")]
    assert f"({bound.default:,g})" in row


@pytest.mark.parametrize("name", ["max_alternatives", "max_work"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_below_one_is_refused(name: str, value: int) -> None:
    with pytest.raises(InterlockError, match=name) as refused:
        SchemaLimits(**{name: value})
    assert (refused.value.code, refused.value.param) == ("invalid_value", name)


@pytest.mark.parametrize(
    ("narrow", "reason"),
    [
        (SchemaLimits(max_alternatives=20), "more than 20 alternatives for one object"),
        (SchemaLimits(max_work=50), "more than 50 steps"),
    ],
)
def test_a_limit_decides_what_is_refused(narrow: SchemaLimits, reason: str) -> None:
    branches = [{"properties": {f"k{i}": {"const": i}}, "required": [f"k{i}"]} for i in range(30)]
    schema = {"type": "object", "anyOf": branches}
    syntax = json_syntax(",", ":", flexible=False)
    assert not compile_schema(schema, SchemaOptions(), syntax, "j").problems
    (problem,) = compile_schema(schema, SchemaOptions(limits=narrow), syntax, "j").problems
    assert reason in problem.reason
    assert "raises the limit" in problem.reason
