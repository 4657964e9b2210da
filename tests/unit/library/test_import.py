"""Importing the package costs nothing; its names come when they are used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import interlock

# Everything that is heavy, native, or a server.
HEAVY = {
    "llguidance", "xllamacpp", "llama_cpp", "torch", "xgrammar", "numpy", "tokenizers", "msgspec", "zmq", "pydantic",
    "pydantic_core", "fastapi", "uvicorn", "httpx", "jinja2", "transformers",
}  # fmt: skip


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport json, sys\nprint(json.dumps([name for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_none_of_its_parts():
    loaded = loaded_after("import interlock; dir(interlock); interlock.__version__")
    assert loaded.isdisjoint(HEAVY)
    assert [name for name in loaded if name.startswith("interlock.")] == []


def test_importing_the_package_takes_less_than_150_ms():
    code = "import time; began = time.process_time(); import interlock; print(time.process_time() - began)"
    took = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
    assert min(took) < 0.15


def test_errors_and_tools_come_without_anything_native():
    loaded = loaded_after("from interlock import InterlockError, Problem, Tool, ToolContext")
    assert loaded.isdisjoint(HEAVY)


def test_every_name_of_the_stub_can_be_had():
    stub = Path(interlock.__file__).with_suffix(".pyi").read_text()
    names = {line.rsplit(" as ", 1)[1] for line in stub.splitlines() if " as " in line}
    assert names == {name for name in dir(interlock) if name[0].isupper() or name.endswith(("_of", "_schema"))}
    for name in names:
        assert getattr(interlock, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = interlock.Nothing  # type: ignore[attr-defined]
