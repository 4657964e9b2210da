from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from interlock.config import EngineConfig, FakeConfig
from interlock.errors import InterlockError
from interlock.runners import registry
from interlock.runners.registry import create_runner
from interlock.tokenization.byte_tokenizer import byte_tokenizer

CONFIG = EngineConfig(model=Path("none"), runner="fake", slots=3, context_tokens=100, max_batch_tokens=32)


def test_makes_a_fake_as_configured():
    info = create_runner(CONFIG, byte_tokenizer()).info
    assert (info.num_slots, info.context_tokens, info.max_batch_tokens) == (3, 100, 32)
    assert info.num_logits == byte_tokenizer().vocabulary.size


def test_makes_a_scripted_fake(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"say": "x"}]))
    fake = FakeConfig(mode="scripted", script=script)
    assert create_runner(dataclasses.replace(CONFIG, fake=fake), byte_tokenizer()).info.name == "fake"


def test_a_scripted_fake_needs_a_script():
    with pytest.raises(InterlockError, match="needs a script"):
        create_runner(dataclasses.replace(CONFIG, fake=FakeConfig(mode="scripted")), byte_tokenizer())


def test_an_unknown_name_is_answered_with_the_names():
    with pytest.raises(InterlockError, match="fake, llama_cpp, torch"):
        create_runner(dataclasses.replace(CONFIG, runner="none"), byte_tokenizer())  # type: ignore[arg-type]


def test_a_folder_is_for_torch_and_a_file_for_llama_cpp(tmp_path, monkeypatch):
    def named(name):
        return lambda config, tokenizer: name

    monkeypatch.setattr(registry, "FACTORIES", {name: named(name) for name in registry.FACTORIES})
    file = tmp_path / "model.gguf"
    for path, expected in ((tmp_path, "torch"), (file, "llama_cpp")):
        assert create_runner(EngineConfig(model=path), byte_tokenizer()) == expected


def test_what_torch_needs_is_said_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InterlockError, match="torch and transformers") as caught:
        create_runner(EngineConfig(model=tmp_path), byte_tokenizer())
    assert (caught.value.code, caught.value.hint) == ("missing_extra", "pip install 'interlock-llm[torch]'")


def test_a_fake_loads_no_native_engine_library():
    create_runner(CONFIG, byte_tokenizer())
    assert "xllamacpp" not in sys.modules
