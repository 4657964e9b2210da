"""Several models in one server: loaded on demand, unloaded when idle, each found by its name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.model

WAIT_S = 60


@pytest.fixture(scope="module")
def server(demo_model: Path) -> Iterator[tuple[psutil.Process, httpx.Client]]:
    options = ["--model", f"a={demo_model}", "--model", f"b={demo_model}", "--context-tokens", "512"]
    options += ["--port", "0", "--slots", "1", "--threads", "1", "--load", "on-demand", "--unload-after", "4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "serves a, b at http" in line
        with httpx.Client(base_url=line.split()[-1], timeout=WAIT_S) as client:
            yield psutil.Process(process.pid), client
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def workers(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children() if "interlock.engine.worker" in child.cmdline()]


def ask(client: httpx.Client, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}
    return client.post("/v1/chat/completions", json=body)


def phases(client: httpx.Client) -> dict[str, Any]:
    models = client.get("/admin/api/models").json()["models"]
    return {model["id"]: model["phase"] for model in models}


def test_a_model_runs_while_it_is_used_and_not_before_or_after(server: Any) -> None:
    process, client = server
    assert phases(client) == {"a": "unloaded", "b": "unloaded"}
    assert (client.get("/health").status_code, client.get("/ready").status_code) == (200, 200)
    assert workers(process) == []
    assert ask(client, "a").json()["model"] == "a"
    (worker,) = workers(process)
    assert phases(client)["b"] == "unloaded"
    _, alive = psutil.wait_procs([worker], timeout=WAIT_S)
    assert alive == []
    assert ask(client, "b").status_code == 200
    assert ask(client, "a").status_code == 200


def test_a_prompt_is_shown_without_a_model_that_runs(server: Any) -> None:
    _, client = server
    body = {"model": "a", "messages": [{"role": "user", "content": "Hi"}]}
    assert client.post("/v1/chat/completions/render", json=body).status_code == 200


def test_an_unknown_model_is_told_what_there_is(server: Any) -> None:
    _, client = server
    response = ask(client, "c")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")
    assert "a, b" in response.json()["error"]["message"]
