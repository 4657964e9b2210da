"""Interlock beside llama.cpp's own server, on the same GGUF file and the same build of llama.cpp.

python benchmarks/compare/llama_cpp.py
"""

from __future__ import annotations

from harness import compare, ours, parser, served

from interlock import env
from interlock.provision.demo import demo_model


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    model = str(demo_model(env.cache_dir(), None))
    slots = ["--threads", str(options.threads), "--slots", str(max(options.concurrency))]
    peer = ["benchmarks/peers/llama_server.py", model, *slots, "--context", str(options.context)]
    commands = {"interlock": ours(model, options), "llama.cpp": peer}
    with served(commands, options) as contestants:
        compare("llama_cpp", contestants, dict.fromkeys(commands, "Q8_0"), options)


if __name__ == "__main__":
    main()
