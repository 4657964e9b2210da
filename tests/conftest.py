"""Fixtures every suite may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from interlock import env
from interlock.provision import demo
from scripts.gguf_to_safetensors import convert

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Public test data beside the checkout; tests that need it skip where it is absent."""
    path = ROOT.parent / "shared"
    if not (path / "data").is_dir():
        pytest.skip("no shared data beside the checkout (../shared/data)")
    return path


@pytest.fixture(scope="session")
def demo_model() -> Path:
    """The embedded model at Q8_0; fetched into the cache folder on first use."""
    return demo.demo_model(env.cache_dir(), None)


@pytest.fixture(scope="session")
def demo_folder(demo_model: Path) -> Path:
    """The embedded model as a Hugging Face folder, float32; made on first use and kept beside the GGUF file."""
    folder = demo_model.with_name("SmolLM2-135M-Instruct.F32")
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "model.safetensors").is_file():
            convert(demo_model, folder)
    return folder
