"""Fixtures every suite may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import env
from interlock.provision import demo

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
