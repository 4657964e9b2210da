"""vLLM on a CPU, from an environment of its own (scripts/vllm_environment.sh): prints its URL and serves until killed.

python benchmarks/peers/vllm_server.py FOLDER --environment ~/.cache/interlock/vllm

The grammar engine is guidance, as docs/distributed.md asks for; ``--backend auto`` is vLLM's default.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

NAME = "demo"
_START_S = 600.0
_ARGUMENTS = (
    *("--dtype", "float32", "--enforce-eager", "--host", "127.0.0.1", "--served-model-name", NAME),
    *("--enable-scale-out", "--enable-prompt-tokens-details"),
    *(
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "hermes",
    ),  # for its own tool calls; Interlock needs none
)


class VllmServer:
    """environment: the folder that scripts/vllm_environment.sh made. model: a Hugging Face folder. threads: on the first
    cores. log: where its output goes."""

    def __init__(
        self,
        environment: Path,
        model: Path,
        *,
        context_tokens: int = 2048,
        backend: str = "guidance",
        threads: int = 1,
        log: Path | None = None,
    ) -> None:
        self._environment = environment
        self._command = [
            *(str(environment / "bin" / "vllm"), "serve", str(model)),
            *("--structured-outputs-config", json.dumps({"backend": backend})),
            *(*_ARGUMENTS, "--max-model-len", str(context_tokens), "--port", str(_free_port())),
        ]
        self._cores = f"0-{threads - 1}" if threads > 1 else "0"
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._command[-1]}"

    def start(self) -> None:
        """Return when it is healthy. At the same port each time."""
        with (self._log or Path(os.devnull)).open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=output, env=self._environ(), start_new_session=True
            )
        end = time.monotonic() + _START_S
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"vLLM did not start; see {self._log}")
            time.sleep(1.0)

    def kill(self) -> None:
        """End it and the processes that it started, at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5.0).status_code == 200
        except httpx.HTTPError:
            return False

    def _environ(self) -> dict[str, str]:
        unpacked = sorted((self._environment / "tcmalloc").glob("**/libtcmalloc_minimal.so.4"))
        return {
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "LD_PRELOAD": str(unpacked[0]) if unpacked else "libtcmalloc_minimal.so.4",
            "VLLM_CPU_OMP_THREADS_BIND": self._cores,
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
        }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--backend", default="guidance")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    server = VllmServer(
        arguments.environment,
        arguments.model,
        context_tokens=arguments.context,
        backend=arguments.backend,
        threads=arguments.threads,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with server:
        print(server.url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
