"""Fixtures every suite may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.vllm_server import VllmServer
from interlock import env
from interlock.provision import demo
from scripts import gguf_to_safetensors

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        default="local",
        choices=["local", "vllm"],
        help="what runs the embedded model in tests/clients and tests/contract/test_engine.py; make test-vllm",
    )
    parser.addoption("--torch-device", default="cpu", help="device of the torch runner's tests")
    parser.addoption(
        "--full-product",
        action="store_true",
        help="tests/equivalence/test_cross_product.py: all combinations instead of all pairs",
    )
    parser.addoption(
        "--full-oracle",
        action="store_true",
        help="tests/unit/constraints/schema/test_keyword_combinations.py: all triples of keywords that speak of one type",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("local_engine")
    if marker is not None and item.config.getoption("--engine") != "local":
        pytest.skip(f"the engine vllm refuses it: {marker.args[0]}")


@pytest.fixture(scope="session")
def torch_device(request: pytest.FixtureRequest) -> str:
    """Where tests of the torch runner run; all are written for a CPU and hold on any device."""
    return str(request.config.getoption("--torch-device"))


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
def demo_folder() -> Path:
    """The embedded model as a Hugging Face folder, float32; made on first use and kept beside the GGUF file."""
    return gguf_to_safetensors.demo_folder()


class _RunningVllm:
    """A server that somebody else has started."""

    def __init__(self, url: str) -> None:
        self.url = url

    def kill(self) -> None:
        pytest.skip("INTERLOCK_TEST_VLLM names a server that is not the tests' own, which is not killed")


@pytest.fixture(scope="session")
def vllm(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer | _RunningVllm]:
    """A real vLLM on the embedded model. INTERLOCK_TEST_VLLM: the environment that `make test-vllm` has made, or the URL
    of a server (benchmarks/peers/vllm_server.py)."""
    where = os.environ.get("INTERLOCK_TEST_VLLM")
    if where is None:
        pytest.skip("no environment with vLLM (INTERLOCK_TEST_VLLM); make test-vllm makes one")
    if where.startswith("http"):
        yield _RunningVllm(where)
        return
    log = tmp_path_factory.mktemp("vllm") / "log.txt"
    with VllmServer(Path(where), demo_folder, log=log) as server:
        yield server


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes folders of small models with random weights: the name of a configuration class of transformers, and fields
    of it. The same arguments give the same weights."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    transformers = pytest.importorskip("transformers", reason="needs the extra torch")

    def make(config_class: str, **fields: Any) -> Path:
        sizes = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 64, "max_position_embeddings": 512}
        layers = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
        ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        config = getattr(transformers, config_class)(**{**sizes, **layers, **ids, **fields})
        folder = tmp_path_factory.mktemp(config_class)
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        return folder

    return make
