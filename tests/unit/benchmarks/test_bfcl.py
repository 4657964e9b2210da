"""The benchmark over the leaderboard's tools: a sample of it, and how it judges."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_tools_of_the_leaderboard_compile_in_every_family(root: Path, shared: Path) -> None:
    assert shared.is_dir()
    command = [sys.executable, "benchmarks/bfcl.py", "--compile-only", "--every", "150"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["refused"] == {}
    assert told["tools"] >= 15
    assert told["families"] >= 50


@pytest.fixture
def score(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    return importlib.import_module("bfcl_score")


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a"],
}
EXPECTED = [("f", {"a": [5, 6], "b": ["New York", ""]}), ("g", {"o": [{"k": ["x"]}], "l": [[1, 2]]})]
F = ("f", {"a": 5})
G = ("g", {"o": {"k": "X"}, "l": [1, 2.0]})


@pytest.mark.parametrize(
    ("call", "valid"),
    [
        (F, True),
        (("f", {"a": "5"}), False),
        (("f", {"a": 5, "c": 1}), False),
        (("f", [5]), False),
        (("h", {"a": 5}), False),
    ],
)
def test_a_call_is_valid_by_the_schema_of_its_tool(call: Any, valid: bool, score: Any) -> None:
    question = score.Question(id="", messages=[], tools=[], schemas={"f": SCHEMA}, expected=[])
    assert score.is_valid(question, call) is valid


@pytest.mark.parametrize(
    ("calls", "right"),
    [
        ([F, G], True),
        ([G, F], True),
        ([("f", {"a": 6, "b": "new-york"}), G], True),
        ([F], False),
        ([F, G, G], False),
        ([("f", {"a": 7}), G], False),
        ([("f", {"b": "New York"}), G], False),
        ([("f", {"a": True}), G], False),
        ([F, ("g", {"o": {"k": "y"}, "l": [1, 2]})], False),
        ([F, ("g", {"o": {"k": "x"}, "l": [1]})], False),
    ],
)
def test_an_answer_is_right_by_the_accepted_values(calls: Any, right: bool, score: Any) -> None:
    question = score.Question(id="", messages=[], tools=[], schemas={}, expected=EXPECTED)
    assert score.is_right(question, calls) is right
