"""Interlock beside transformers' ``generate`` with xgrammar's own LogitsProcessor, in float32 both (the torch runner);
Interlock with llama.cpp in Q8_0 of the same weights is shown too, whose speed is no comparison. Needs torch and xgrammar.

    python benchmarks/compare/transformers_xgrammar.py
"""

from __future__ import annotations

from harness import Served, compare, ours, parser

from common import demo_folder, server
from interlock import env
from interlock.provision.demo import demo_model
from peers.batches import Batches


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    folder = demo_folder()
    peer = Batches(folder, threads=options.threads)
    with (
        server(ours(str(folder), options)) as torch_url,
        server(ours(str(demo_model(env.cache_dir(), None)), options)) as llama_url,
    ):
        contestants = {
            "interlock, torch": Served(torch_url),
            "interlock, llama.cpp": Served(llama_url),
            "transformers + xgrammar": peer,
        }
        precision = {name: "Q8_0" if "llama.cpp" in name else "float32" for name in contestants}
        compare("transformers_xgrammar", contestants, precision, options)


if __name__ == "__main__":
    main()
