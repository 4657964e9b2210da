"""Models for the suites that need more than the fake runner."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["llama_cpp", "torch"])
def model_path(request: pytest.FixtureRequest, demo_model: Path) -> Path:
    """The embedded model for llama.cpp, and for torch one with random weights over the same vocabulary."""
    if request.param == "llama_cpp":
        return demo_model
    random_model = request.getfixturevalue("random_model")
    return random_model("LlamaConfig", vocab_size=49_152, initializer_range=0.3)
