"""Interlock beside llama.cpp's own server, on the same GGUF file and the same build of llama.cpp.

python benchmarks/compare/llama_cpp.py
"""

from __future__ import annotations

from harness import Served, compare, ours, parser

from common import server
from interlock import env
from interlock.provision.demo import demo_model


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    model = str(demo_model(env.cache_dir(), None))
    slots = ["--threads", str(options.threads), "--slots", str(max(options.concurrency))]
    peer = ["benchmarks/peers/llama_server.py", model, *slots, "--context", str(options.context)]
    with server(ours(model, options)) as url, server(peer) as peer_url:
        contestants = {"interlock": Served(url), "llama.cpp": Served(peer_url)}
        compare("llama_cpp", contestants, dict.fromkeys(contestants, "Q8_0"), options)


if __name__ == "__main__":
    main()
