"""Interlock beside llama.cpp's own server, on the same GGUF file and the same build of llama.cpp.

python benchmarks/compare/llama_cpp.py
"""

from __future__ import annotations

from harness import compare, parser

from interlock import env
from interlock.provision.demo import demo_model


def main() -> None:
    arguments = parser(__doc__ or "").parse_args()
    model = str(demo_model(env.cache_dir(), None))
    slots = ["--threads", str(arguments.threads), "--slots", str(max(arguments.concurrency))]
    ours = ["-m", "interlock", "serve", model, "--served-name", "demo", "--port", "0", "--log-level", "warning"]
    commands = {
        "interlock": [*ours, *slots, "--context-tokens", str(arguments.context)],
        "llama.cpp": ["benchmarks/peers/llama_server.py", model, *slots, "--context", str(arguments.context)],
    }
    compare("llama.cpp", commands, arguments, "the same file at Q8_0, the same library")


if __name__ == "__main__":
    main()
