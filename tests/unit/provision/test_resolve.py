from __future__ import annotations

import os
from pathlib import Path

import pytest

from interlock.errors import InterlockError
from interlock.provision import resolve
from interlock.provision.resolve import resolve_model


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gguf(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF and more")
    return path


def test_a_file_here_is_taken_as_it_is(here: Path) -> None:
    path = gguf(here / "model.gguf")
    assert resolve_model(str(path), cache=here) == path
    assert resolve_model("model.gguf", cache=here) == Path("model.gguf")


def test_a_path_here_comes_before_the_hub(here: Path) -> None:
    gguf(here / "org" / "repo" / "model.gguf")
    assert resolve_model("org/repo/model.gguf", cache=here) == Path("org/repo/model.gguf")


def test_the_home_folder_may_be_written_short(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    path = gguf(here / "model.gguf")
    assert resolve_model("~/model.gguf", cache=here) == path


def test_a_folder_is_a_model_folder_or_holds_one_file(here: Path) -> None:
    path = gguf(here / "one" / "model.gguf")
    assert resolve_model("one", cache=here) == Path("one/model.gguf")
    (here / "one" / "tokenizer.json").write_text("{}")
    assert resolve_model("one", cache=here) == Path("one")
    assert path.exists()


def test_demo_is_the_demo_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "demo_model", lambda cache, progress: cache / "made")
    assert resolve_model("demo", cache=here) == here / "made"


WRONG = [
    ("missing.gguf", "there is no model at missing.gguf"),
    ("/nowhere/model.gguf", "there is no model at /nowhere/model.gguf"),
    ("./org/repo", r"there is no model at ./org/repo"),
    ("folder/missing.gguf", "there is no model at folder/missing.gguf"),
    ("org/repo", "for a repository say which file"),
    ("org/repo/model.safetensors", "only .gguf files are served"),
    ("text.gguf", "text.gguf is not a GGUF file"),
    ("empty", "holds neither tokenizer.json nor a .gguf file"),
    ("two", "holds 2 .gguf files; name one"),
    ("", "a model has to be named"),
]


@pytest.mark.parametrize(("spec", "message"), WRONG)
def test_what_is_no_model_is_refused_with_the_forms(here: Path, spec: str, message: str) -> None:
    (here / "text.gguf").write_text("hello")
    (here / "empty").mkdir()
    gguf(here / "two" / "a.gguf")
    gguf(here / "two" / "b.gguf")
    with pytest.raises(InterlockError, match=message) as caught:
        resolve_model(spec, cache=here)
    assert caught.value.param == "model"
    assert "org/repo/file.gguf" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(here: Path) -> None:
    path = gguf(here / "model.gguf")
    path.chmod(0)
    with pytest.raises(InterlockError, match=r"cannot read model\.gguf"):
        resolve_model("model.gguf", cache=here)
