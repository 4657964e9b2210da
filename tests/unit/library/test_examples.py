"""The examples of docs/library.md run, in order, in one program."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

_BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEEDED = {"": (), "torch": ("torch", "transformers"), "llama_cpp": ("llama_cpp",)}


@pytest.mark.filterwarnings("default")  # those of transformers are not ours
def test_the_examples_of_the_guide_run(
    root: Path, demo_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(demo_folder.parent)
    names: dict[str, Any] = {"__name__": "guide"}
    blocks = _BLOCK.findall((root / "docs" / "library.md").read_text())
    assert len(blocks) > 6
    for kind, code in blocks:
        if all(importlib.util.find_spec(name) for name in _NEEDED[kind]):
            exec(compile(code, "docs/library.md", "exec", dont_inherit=True), names)
    said = capsys.readouterr().out
    assert "tool_choice requires a call" in said
    assert "invalid_schema [('$ref'" in said
