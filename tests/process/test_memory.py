"""Memory of the server's processes over many requests, none like another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.model

MOST_GROWTH = 40 * 2**20  # the grammars stay in caches bounded by bytes; 6 MiB a request would be 1 GiB


@pytest.fixture
def server(demo_model: Path) -> Iterator[tuple[psutil.Process, str]]:
    options = ["--port", "0", "--threads", "1", "--context-tokens", "256", "--served-name", "m"]
    options += ["--prompt-cache-ram", "0"]  # else it fills, as it is meant to
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", "serve", str(demo_model), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    yield psutil.Process(process.pid), process.stdout.readline().split()[-1]
    process.kill()
    process.communicate()


def resident(process: psutil.Process) -> int:
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


def send(url: str, number: int) -> None:
    """A schema of its own; every third client leaves after the first event."""
    words = [f"{number}-{word}" for word in range(20)]
    schema = {"type": "object", "properties": {"a": {"enum": words}}, "required": ["a"]}
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 4,
        "stream": True,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
    }
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=120) as response:
        assert response.status_code == 200
        lines = response.iter_lines()
        assert json.loads(next(lines).removeprefix("data: "))["choices"]
        if number % 3:
            assert [line for line in lines if line][-1] == "data: [DONE]"


def test_distinct_schemas_and_clients_that_leave_leave_nothing_behind(
    server: tuple[psutil.Process, str],
) -> None:
    process, url = server
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: send(url, number), range(60)))  # caches and allocators have warmed up
        before = resident(process)
        list(pool.map(lambda number: send(url, number), range(60, 260)))
        growth = resident(process) - before

    assert growth < MOST_GROWTH
