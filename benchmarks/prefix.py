"""Time to the first token with what earlier turns left in the cache, against a cold cache.

What the numbers mean: an agent's conversation of ``--turns`` growing turns on the demo model, in process, one request at a time;
each turn repeats the whole history and adds a question. Every turn runs with the prefix cache and without before the next
one does. ``--clock cpu`` counts CPU time, for a machine that is busy with other things.

    python benchmarks/prefix.py --turns 20 --threads 2
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from common import finish
from interlock import env
from interlock.config import EngineConfig, LlamaCppConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.provision.demo import demo_model
from interlock.runners.registry import create_runner
from interlock.tokenization.load import describe

SYSTEM = "You are an assistant with tools. " + " ".join(f"Tool {i} finds item number {i}." for i in range(24))
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def turn(core: EngineCore, request: EngineRequest, clock: Callable[[], float]) -> tuple[float, list[int]]:
    """Seconds to the first token, and all ids."""
    ids: list[int] = []
    first_s = 0.0
    start = clock()
    core.submit(request)
    while not core.is_empty:
        for output in core.step():
            ids += output.token_ids
            first_s = first_s or clock() - start
    return first_s, ids


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    path = demo_model(env.cache_dir(), None)
    tokenizer = describe(path).tokenizer
    config = EngineConfig(
        model=path, slots=1, context_tokens=2048, llama_cpp=LlamaCppConfig(threads=arguments.threads)
    )
    compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 20))
    runners = {name: create_runner(config, tokenizer) for name in ("cold", "warm")}
    cores = {
        name: EngineCore(runner, compiler, tokenizer.vocabulary, replace(config, prefix_cache=name == "warm"))
        for name, runner in runners.items()
    }
    first_ms: dict[str, list[float]] = {name: [] for name in cores}
    ids = list(tokenizer.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"))
    num_same = 0
    for number in range(arguments.turns):
        ids += tokenizer.encode(f"<|im_start|>user\nFind item {number}.<|im_end|>\n<|im_start|>assistant\n")
        request = EngineRequest(
            request_id=f"t{number}",
            prompt_ids=tuple(ids),
            sampling=SamplingParams(temperature=0.0),
            max_tokens=8,
            stop_ids=tokenizer.vocabulary.stop_ids,
        )
        said = {}
        for name, core in cores.items():
            first_s, said[name] = turn(core, request, CLOCKS[arguments.clock])
            first_ms[name].append(1000 * first_s)
        num_same += said["cold"] == said["warm"]
        ids += [*said["warm"], *tokenizer.encode("<|im_end|>\n")]
    stats = {name: core.stats() for name, core in cores.items()}
    for runner in runners.values():
        runner.close()
    later = {name: statistics.median(times[1:]) for name, times in first_ms.items()}
    return {
        "turns": arguments.turns,
        "conversation_tokens": len(ids),
        "prompt_tokens_computed": {name: one.num_prompt_tokens for name, one in stats.items()},
        "first_token_ms": {name: round(value, 1) for name, value in later.items()},
        "cold_over_warm": round(later["cold"] / later["warm"], 1),
        "same_output": num_same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    finish("prefix", measure(parser.parse_args()))


if __name__ == "__main__":
    main()
