"""What the benchmarks share: the machine, a load generator, and the closing JSON line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent


def machine() -> dict[str, Any]:
    """Facts of this machine and its packages that a figure depends on."""
    from importlib.metadata import version

    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "llguidance": version("llguidance"),
        "xllamacpp": version("xllamacpp"),
    }


def finish(name: str, results: dict[str, Any], out: Path | None = None) -> None:
    """Print the last line: one JSON document. out: a file for it too."""
    command = " ".join([Path(sys.executable).name, *sys.argv])
    document = {"benchmark": name, "command": command, "machine": machine(), **results}
    print(json.dumps(document))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(document, indent=1) + "\n")


def demo_folder() -> Path:
    """The embedded model as a Hugging Face folder, float32."""
    sys.path.insert(0, str(ROOT))
    from scripts import gguf_to_safetensors

    return gguf_to_safetensors.demo_folder()


@contextlib.contextmanager
def server(command: list[str], pattern: str = "http://") -> Iterator[str]:
    """Run a server process; give its base URL, the first word with ``pattern`` on its standard output."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            word = next((word for word in line.split() if word.startswith(pattern)), None)
            if word:
                yield word.rstrip("/")
                return
        raise RuntimeError(f"{command} ended with status {process.wait()}")
    finally:
        process.terminate()
        process.wait(30)


@dataclass(frozen=True, slots=True)
class Load:
    """Figures of one burst. ``first_token_s``: median over its requests."""

    tokens: int
    seconds: float
    first_token_s: float

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds


async def burst(url: str, bodies: list[dict[str, Any]]) -> Load:
    """Send all ``bodies`` to chat completions at once, streamed; count completion tokens by usage."""
    async with httpx.AsyncClient(timeout=600) as client:
        start = time.perf_counter()
        results = await asyncio.gather(*(_one(client, url, body) for body in bodies))
        seconds = time.perf_counter() - start
    return Load(sum(tokens for tokens, _ in results), seconds, statistics.median(first for _, first in results))


async def _one(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> tuple[int, float]:
    start, first, tokens = time.perf_counter(), 0.0, 0
    body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
        if response.status_code != 200:
            raise RuntimeError((await response.aread()).decode())
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise RuntimeError(str(chunk["error"]))
            if not first and any(_has_text(choice) for choice in chunk["choices"]):
                first = time.perf_counter() - start
            if chunk.get("usage"):
                tokens = chunk["usage"]["completion_tokens"]
    return tokens, first


def _has_text(choice: dict[str, Any]) -> bool:
    delta = choice["delta"]
    return bool(delta.get("content") or delta.get("tool_calls") or delta.get("reasoning_content"))
