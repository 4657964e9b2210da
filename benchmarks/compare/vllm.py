"""Interlock with its own worker beside vLLM on a CPU. The weights are the same numbers, but vLLM computes in float32 and
llama.cpp in Q8_0: tokens per second are no comparison of the servers.

    python benchmarks/compare/vllm.py --vllm ~/.cache/interlock/vllm
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness import ROOT, compare, parser

from interlock import env
from interlock.provision.demo import demo_model

sys.path.insert(0, str(ROOT))

from scripts.gguf_to_safetensors import convert


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--vllm", type=Path, required=True, help="environment with vLLM")
    arguments = options.parse_args()
    model = demo_model(env.cache_dir(), None)
    with tempfile.TemporaryDirectory() as folder:
        convert(model, Path(folder))
        slots = ["--threads", str(arguments.threads), "--slots", str(max(arguments.concurrency))]
        ours = ["-m", "interlock", "serve", str(model), "--served-name", "demo", "--port", "0"]
        peer = ["benchmarks/peers/vllm_server.py", folder, "--environment", str(arguments.vllm)]
        commands = {
            "interlock": [*ours, *slots, "--context-tokens", str(arguments.context), "--log-level", "warning"],
            "vllm": [*peer, "--context", str(arguments.context)],
        }
        compare("vllm", commands, arguments, "vLLM in float32, Interlock in Q8_0: speed is not compared")


if __name__ == "__main__":
    main()
