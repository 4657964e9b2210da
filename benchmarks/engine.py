"""Tool calls with forced tokens and drafts, against the same calls without: one request at a time, prefill included.

What the numbers mean: the first ``--requests`` questions of BFCL's live_simple part, one required call each, greedy, on the
demo model at Q8_0 and F16. Each request runs under every variant before the next one does, in an order that alternates, so
that a disturbance of the machine hits all alike; nothing is left in the cache between runs. A ratio is the time without
over the time with, of all requests of a round; the median over the rounds is reported. ``decode`` leaves out the steps that
compute tokens of a prompt. ``--clock cpu`` counts the process's CPU time in place of wall time: with ``--threads 1`` a fair
measure on a machine that is busy with other things. ``same_output`` counts
the requests with the same tokens as without: all at Q8_0; at F16 llama.cpp's logits of a token depend on how many are
computed with it.

    python benchmarks/engine.py --rounds 5 --threads 2
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common import finish
from interlock import env
from interlock.config import EngineConfig, LlamaCppConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.engine import EngineRequest
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.provision.demo import demo_model
from interlock.runners.base import ModelRunner
from interlock.runners.registry import create_runner
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.load import describe
from tool_requests import tool_requests

DRAFTS = SpeculativeConfig(methods=("skeleton", "ngram"), num_speculative_tokens=7)
VARIANTS: dict[str, dict[str, Any]] = {
    "off": {"forced_tokens": False},
    "forced": {},
    "forced_drafts": {"speculative": DRAFTS},
    "forced_drafts_always": {"speculative": replace(DRAFTS, adaptive=False)},
}
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Tally:
    """Seconds of one variant in one round."""

    total: float = 0.0
    decode: float = 0.0


@dataclass
class Variant:
    core: EngineCore
    clock: Callable[[], float]
    rounds: list[Tally] = field(default_factory=list)
    outputs: dict[str, list[int]] = field(default_factory=dict)

    def run(self, request: EngineRequest, tally: Tally) -> None:
        """One request from arrival to end."""
        core = self.core
        ids: list[int] = []
        num_prompt_tokens = core.stats().num_prompt_tokens
        start = self.clock()
        core.submit(request)
        while not core.is_empty:
            step_start = self.clock()
            for output in core.step():
                ids += output.token_ids
            seconds = self.clock() - step_start
            before, num_prompt_tokens = num_prompt_tokens, core.stats().num_prompt_tokens
            tally.decode += seconds if before == num_prompt_tokens else 0.0
        tally.total += self.clock() - start
        self.outputs[request.request_id] = ids


def measure(
    path: Path, description: ModelDescription, requests: list[EngineRequest], arguments: argparse.Namespace
) -> dict[str, Any]:
    base = EngineConfig(
        model=path,
        slots=1,
        context_tokens=2048,
        prefix_cache=False,
        llama_cpp=LlamaCppConfig(threads=arguments.threads),
    )
    tokenizer = description.tokenizer
    runner = create_runner(base, tokenizer)
    compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 28))
    for request in requests:
        assert request.constraint is not None
        compiler.prepare(request.constraint).result(60)
    variants = {
        name: _variant(runner, compiler, description, replace(base, **changes), CLOCKS[arguments.clock])
        for name, changes in VARIANTS.items()
        if name in arguments.variants
    }
    for number in range(arguments.rounds):
        tallies = {name: Tally() for name in variants}
        for index, request in enumerate(requests):
            order = list(variants)
            shift = (index + number) % len(order)
            for name in order[shift:] + order[:shift]:
                variants[name].run(request, tallies[name])
        for name, tally in tallies.items():
            variants[name].rounds.append(tally)
        print(
            number, {name: (round(t.total, 2), round(t.decode, 2)) for name, t in tallies.items()}, flush=True
        )
    compiler.close()
    runner.close()
    return _summary(variants)


def _variant(
    runner: ModelRunner,
    compiler: GrammarCompiler,
    description: ModelDescription,
    config: EngineConfig,
    clock: Callable[[], float],
) -> Variant:
    tokenizer = description.tokenizer
    speculator = create_speculator(config, runner.info, tokenizer, create_runner)
    return Variant(EngineCore(runner, compiler, tokenizer.vocabulary, config, speculator=speculator), clock)


def _summary(variants: dict[str, Variant]) -> dict[str, Any]:
    off = variants["off"]
    result: dict[str, Any] = {}
    for name, variant in variants.items():
        stats = variant.core.stats()
        rounds = len(variant.rounds)
        result[name] = {
            "speedup": _median(b.total / v.total for b, v in zip(off.rounds, variant.rounds, strict=True)),
            "decode_speedup": _median(
                b.decode / v.decode for b, v in zip(off.rounds, variant.rounds, strict=True)
            ),
            "same_output": sum(variant.outputs[name] == ids for name, ids in off.outputs.items()),
            "seconds": _median(tally.total for tally in variant.rounds),
            "steps": stats.num_steps // rounds,
            "generated": stats.num_generated_tokens // rounds,
            "forced": stats.num_forced_tokens // rounds,
            "drafted": stats.num_draft_tokens // rounds,
            "accepted": stats.num_accepted_tokens // rounds,
        }
    return result


def _median(values: Any) -> float:
    return round(statistics.median(values), 3)


def _as_f16(path: Path) -> Path:
    target = path.with_name(f"{path.stem}-f16.gguf")
    if not target.exists():
        command = [sys.executable, "-m", "interlock.runners.llama_cpp.quantize", str(path), str(target)]
        subprocess.run([*command, "--type", "f16"], check=True)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--types", nargs="+", default=["q8_0", "f16"])
    parser.add_argument("--variants", nargs="+", default=["off", "forced", "forced_drafts"], choices=VARIANTS)
    arguments = parser.parse_args()
    path = demo_model(env.cache_dir(), None)
    results = {}
    for type_ in arguments.types:
        file = path if type_ == "q8_0" else _as_f16(path)
        description = describe(file)
        requests = tool_requests(description, arguments.requests, arguments.max_tokens)
        results[type_] = measure(file, description, requests, arguments)
        print(type_, results[type_], flush=True)
    best = arguments.variants[-1]
    finish(
        "engine",
        {
            "forced_speedup": {type_: result[best]["speedup"] for type_, result in results.items()},
            "variants": results,
            "prompt_tokens": sum(len(request.prompt_ids) for request in requests),
            "requests": len(requests),
        },
    )


if __name__ == "__main__":
    main()
