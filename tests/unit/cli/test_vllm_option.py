"""``serve --engine vllm``: which options go together, and what they configure."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock import launch
from interlock.cli.main import main
from interlock.config import ServerConfig
from interlock.errors import InterlockError
from interlock.remote.discovery import ask_for_model
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tests.fakes.vllm import write_byte_tokenizer

URL = "http://127.0.0.1:9"  # nobody listens there


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "vllm"], "takes --url"),
        (["demo", "--engine", "vllm", "--url", URL], "and no MODEL"),
        (["demo", "--url", URL], "are for --engine vllm"),
        (["demo", "--tokenizer", "x"], "are for --engine vllm"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], said: str):
    result = CliRunner().invoke(main, ["serve", *arguments])
    assert result.exit_code == 2
    assert said in result.output


def test_the_engine_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    configured: list[ServerConfig] = []
    monkeypatch.setattr(launch, "run", configured.append)
    monkeypatch.setenv("INTERLOCK_VLLM_API_KEY", "secret")
    path = write_byte_tokenizer(tmp_path, byte_tokenizer())
    urls = ["--url", URL, "--url", "http://127.0.0.1:10"]
    arguments = ["serve", "--engine", "vllm", *urls, "--tokenizer", str(path), "--vllm-model", "m"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    (config,) = configured
    assert config.vllm is not None
    assert config.vllm.urls == (URL, "http://127.0.0.1:10")
    assert (config.vllm.tokenizer, config.vllm.model, config.vllm.api_key) == (path, "m", "secret")
    assert (config.served_name, config.engine.model) == ("m", path)


def test_a_vllm_that_does_not_answer_is_named():
    with pytest.raises(InterlockError, match=f"vLLM at {URL} does not tell its models"):
        ask_for_model(URL, None)
