"""Interlock beside transformers' ``generate`` with xgrammar's own LogitsProcessor, in float32 both (the torch runner);
Interlock with llama.cpp in Q8_0 of the same weights is shown too, whose speed is no comparison. Needs torch and xgrammar.

    python benchmarks/compare/transformers_xgrammar.py
"""

from __future__ import annotations

from harness import compare, ours, parser, served

from common import demo_folder
from interlock import env
from interlock.provision.demo import demo_model
from peers.batches import Batches


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    folder = demo_folder()
    commands = {
        "interlock, torch": ours(str(folder), options),
        "interlock, llama.cpp": ours(str(demo_model(env.cache_dir(), None)), options),
    }
    peer = "transformers + xgrammar"
    precision = {name: "Q8_0" if "llama.cpp" in name else "float32" for name in (*commands, peer)}
    batches = Batches(folder, threads=options.threads)
    with served(commands, options) as contestants:
        compare("transformers_xgrammar", {**contestants, peer: batches}, precision, options)


if __name__ == "__main__":
    main()
