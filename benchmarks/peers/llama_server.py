"""llama.cpp's own server, from the same wheel, in a process of its own: prints its URL and serves until killed.

python benchmarks/peers/llama_server.py MODEL --threads 2 --slots 8 --context 1024
"""

from __future__ import annotations

import argparse
import signal

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--context", type=int, default=1024)
    arguments = parser.parse_args()

    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.n_parallel = arguments.slots
    params.n_ctx = arguments.context * arguments.slots
    params.cpuparams.n_threads = arguments.threads
    params.cpuparams_batch.n_threads = arguments.threads
    params.use_jinja = True
    params.warmup = True
    params.port = 0
    running = xllamacpp.Server(params)
    print(running.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
