"""Interlock with workers of its own beside vLLM on a CPU. vLLM and the torch runner (where torch is installed) compute in
float32, llama.cpp in Q8_0 of the same weights: its tokens per second are no comparison with vLLM.

    python benchmarks/compare/vllm.py --vllm ~/.cache/interlock/vllm
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from harness import compare, ours, parser, served

from common import demo_folder
from interlock import env
from interlock.provision.demo import demo_model


def main() -> None:
    parsing = parser(__doc__ or "")
    parsing.add_argument("--vllm", type=Path, required=True, help="environment with vLLM")
    options = parsing.parse_args()
    folder = str(demo_folder())
    commands = {"interlock, torch": ours(folder, options)} if importlib.util.find_spec("torch") else {}
    commands["interlock, llama.cpp"] = ours(str(demo_model(env.cache_dir(), None)), options)
    peer = ["benchmarks/peers/vllm_server.py", folder, "--environment", str(options.vllm)]
    peer += ["--backend", "auto"]  # vLLM's own default; guidance, which Interlock asks for, refuses more
    commands["vllm"] = [*peer, "--context", str(options.context), "--threads", str(options.threads)]
    precision = {name: "Q8_0" if "llama.cpp" in name else "float32" for name in commands}
    with served(commands, options) as contestants:
        compare("vllm", contestants, precision, options)


if __name__ == "__main__":
    main()
