from __future__ import annotations

import ctypes
import dataclasses
import logging
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from interlock.config import EngineConfig, LlamaCppConfig
from interlock.errors import InterlockError
from interlock.runners.base import ForwardError, StepBatch
from interlock.runners.llama_cpp import abi, load, quantize
from interlock.runners.llama_cpp.batch import BatchBuffer
from interlock.runners.llama_cpp.model import load_model
from interlock.runners.llama_cpp.runner import LlamaCppRunner

# --- the library -------------------------------------------------------------------------------------


def test_the_pinned_library_has_the_structs_expected():
    library = load.load_library("xllamacpp")
    assert library.version == abi.XLLAMACPP_VERSION
    assert (ctypes.sizeof(abi.ModelParams), ctypes.sizeof(abi.ContextParams)) == (80, 168)
    assert abi.mismatches(library.native.llama_context_default_params(), abi.CONTEXT_DEFAULTS) == []
    assert abi.declare(library.native, abi.QUANTIZE_PROTOTYPES) == []


def test_a_library_with_other_defaults_is_refused(monkeypatch):
    library = load.load_library("xllamacpp")
    monkeypatch.setattr(abi, "CONTEXT_DEFAULTS", {**abi.CONTEXT_DEFAULTS, "n_batch": 4096})
    with pytest.raises(InterlockError, match=r"xllamacpp 1\.2 .*n_batch = 2048 \(4096\)") as caught:
        load._verify("xllamacpp", "1.2", library.native, library.structs)
    assert caught.value.hint == f"pip install xllamacpp=={abi.XLLAMACPP_VERSION}"


def test_a_library_without_a_function_is_refused():
    with pytest.raises(InterlockError, match="llama_decode is missing"):
        load._verify("llama-cpp-python", "0", ctypes.CDLL(None), abi.XLLAMACPP_STRUCTS)


def test_a_library_that_is_not_installed_is_named_with_the_cure(monkeypatch):
    monkeypatch.setattr(load.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InterlockError, match="xllamacpp or llama-cpp-python") as caught:
        load.load_library()
    assert caught.value.code == "missing_extra"
    assert "pip install" in caught.value.hint


def test_log_lines_go_to_logging_and_errors_are_kept(caplog):
    messages = load.LogMessages()
    with caplog.at_level(logging.DEBUG, "interlock.llama_cpp"):
        messages._receive(2, b"for information\n", None)
        messages._receive(abi.LOG_ERROR, b"it broke: ", None)
        messages._receive(abi.LOG_CONTINUE, b"because\xff\n", None)
    assert [record.message for record in caplog.records] == ["for information", "it broke:", "because\ufffd"]
    assert messages.last() == "because\ufffd"
    messages.clear()
    assert messages.last() == "no reason was logged"


# --- loading a model ---------------------------------------------------------------------------------


def config_of(path: Path, **llama_cpp: object) -> EngineConfig:
    return EngineConfig(
        model=path,
        slots=2,
        context_tokens=256,
        max_batch_tokens=32,
        llama_cpp=LlamaCppConfig(**{"threads": 1, **llama_cpp}),
    )


def load_with(config: EngineConfig):
    return load_model(load.load_library(), config, 8192)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InterlockError, match=r"none\.gguf cannot be read: No such file"):
        load_with(config_of(tmp_path / "none.gguf"))


FILES = {
    "is not a GGUF file": b"PK\3\4 a zip",
    "cannot be loaded: ": b"GGUF\3\0\0\0" + b"\0" * 16,
}


@pytest.mark.parametrize("message", FILES)
def test_a_file_that_is_no_model_is_refused(tmp_path, message):
    path = tmp_path / "model.gguf"
    path.write_bytes(FILES[message])
    with pytest.raises(InterlockError, match=message) as caught:
        load_with(config_of(path))
    assert "no reason" not in caught.value.message


def test_gpu_layers_without_a_gpu_build_are_refused(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(InterlockError, match="no GPU support"):
        load_with(config_of(path, gpu_layers=-1))


@pytest.mark.model
def test_a_diffusion_model_is_refused(demo_model, tmp_path):
    """A file that says it is one: LLaDA has the tensors of a Llama, and a name as long."""
    path = tmp_path / "model.gguf"
    data = bytearray(demo_model.read_bytes())
    end = data.index(b"tokenizer.ggml.")
    data[:end] = data[:end].replace(b"llama", b"llada")
    path.write_bytes(data)
    with pytest.raises(InterlockError, match="is a diffusion model") as caught:
        load_with(config_of(path))
    assert caught.value.code == "invalid_value"
    path.unlink()


@pytest.mark.model
def test_context_limits(demo_model):
    with pytest.raises(InterlockError, match="trained for 8192"):
        load_with(dataclasses.replace(config_of(demo_model), context_tokens=16_384))
    config = dataclasses.replace(config_of(demo_model), context_tokens=0, slots=3)
    loaded = load_model(load.load_library(), config, 300)
    assert loaded.context_tokens == 300
    loaded.close()


@pytest.mark.model
def test_what_is_not_exact_is_not_declared_exact(demo_model):
    loaded = load_with(config_of(demo_model, flash_attention="off"))
    assert not loaded.capabilities.bit_identical
    loaded.close()


@pytest.mark.model
@pytest.mark.parametrize(("type_", "is_exact"), [("q8_0", True), ("f16", False)])
def test_exactness_is_tried_out_at_load(demo_model, tmp_path, type_: str, is_exact: bool):
    """A token of an F16 model has other logits when it is computed alone."""
    path = demo_model
    if type_ == "f16":
        path = tmp_path / "f16.gguf"
        result = CliRunner().invoke(quantize.main, [str(demo_model), str(path), "--type", "f16"])
        assert result.exit_code == 0
    runner = LlamaCppRunner(config_of(path), max_default_context_tokens=8192)
    assert runner.info.capabilities.bit_identical == is_exact
    runner.close()


@pytest.mark.model
def test_a_failed_pass_empties_its_slots_and_the_runner_goes_on(demo_model, monkeypatch):
    runner = LlamaCppRunner(config_of(demo_model), max_default_context_tokens=8192)
    ids = np.array([1, 2], np.int32)
    batch = StepBatch(token_ids=ids, positions=ids - 1, slots=np.zeros(2, np.int32), logits_at=ids[:0])
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_decode", lambda: -3)
        with pytest.raises(ForwardError, match="status -3"):
            runner.launch(batch).discard()
    runner.launch(batch).discard()
    runner.close()
    runner.close()
    with pytest.raises(ValueError, match="closed"):
        runner.truncate(0, 0)


# --- batches -----------------------------------------------------------------------------------------


def test_a_batch_is_filled_by_rising_slot_and_rows_follow():
    buffer = BatchBuffer(8, abi.XLLAMACPP_STRUCTS)
    rows = buffer.fill(
        StepBatch(
            token_ids=np.array([10, 11, 20, 5], np.int32),
            positions=np.array([3, 4, 0, 7], np.int32),
            slots=np.array([2, 2, 3, 0], np.int32),
            logits_at=np.array([1, 3], np.int32),
        )
    )
    batch = buffer.struct
    assert rows.tolist() == [2, 0]
    assert batch.n_tokens == 4
    assert batch.token[:4] == [5, 10, 11, 20]
    assert batch.pos[:4] == [7, 3, 4, 0]
    assert [batch.seq_id[i][0] for i in range(4)] == [0, 2, 2, 3]
    assert batch.n_seq_id[:4] == [1, 1, 1, 1]
    assert batch.logits[:4] == [1, 0, 1, 0]


# --- quantising --------------------------------------------------------------------------------------


def invoke(*arguments: object):
    return CliRunner().invoke(quantize.main, [str(argument) for argument in arguments])


def test_quantising_says_what_is_wrong_with_a_file(tmp_path):
    source = tmp_path / "source.gguf"
    source.write_bytes(b"not a model at all")
    assert "is not a GGUF file" in (result := invoke(source, tmp_path / "out")).output
    assert result.exit_code == 1
    assert "is not there" in (result := invoke(tmp_path / "none", tmp_path / "out")).output
    assert result.exit_code == 1


@pytest.mark.model
def test_quantised_files_load(demo_model, tmp_path):
    target = tmp_path / "f16.gguf"
    result = invoke(demo_model, target, "--type", "f16")
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 1
    loaded = load_with(config_of(target))
    assert loaded.name.endswith("F16")
    loaded.close()
