"""A real vLLM on the demo model. The environment is made by `make test-vllm`, which also says where it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers.vllm_server import VllmServer


@pytest.fixture(scope="session")
def vllm(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    environment = os.environ.get("INTERLOCK_TEST_VLLM")
    if environment is None:
        pytest.skip("no environment with vLLM (INTERLOCK_TEST_VLLM); make test-vllm makes one")
    log = tmp_path_factory.mktemp("vllm") / "log.txt"
    with VllmServer(Path(environment), demo_folder, log=log) as server:
        yield server
