"""Requests of all kinds with random cancels, preemptions, pauses and faults, for hours if need be, on the fake runner.

    python benchmarks/soak.py [--requests 10000] [--seed 0] [--prompt-cache-bytes 200000]

Every request has to end exactly once; the sequences, slots and matchers have to be free at the end; outputs of a sample have
to equal those of solo runs; memory must not grow. The core's integrity checks run after every step.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from common import finish
from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest, LengthClosing, ThinkingBudget
from interlock.core.sampling import SamplingParams
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.errors import InterlockError
from interlock.runners.fake import FakeRunner, Faults
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.vocabulary
POISON, NOT_A_NUMBER = 1, 2  # ids that break a pass, or its logits; only prompts have them
NUM_SCHEMAS = 40
STEMS = [f"System prompt {i}: " + "tools and rules, " * (3 * i + 1) for i in range(6)]
CONFIG = EngineConfig(
    model=Path("none"),
    mask_threads=1,
    max_waiting=64,
    max_kv_tokens=1200,
    prompt_cache_bytes=200_000,
    fairness_tokens=16,
    speculative=SpeculativeConfig(methods=("skeleton", "ngram"), num_speculative_tokens=4, adaptive=False),
)
CACHED_GRAMMARS_BYTES = 1 << 20


@dataclass
class Soak:
    """What happened. ends: finish reasons and codes of failures."""

    rng: random.Random
    ends: Counter[str] = field(default_factory=Counter)
    ids: dict[str, list[int]] = field(default_factory=dict)
    sample: list[tuple[EngineRequest, list[int], str]] = field(default_factory=list)
    requests: dict[str, EngineRequest] = field(default_factory=dict)
    num_wrong: int = 0


def constraint_of(rng: random.Random) -> LoweredConstraint | None:
    kind = rng.randrange(4)
    if kind == 0:
        return None
    number = rng.randrange(NUM_SCHEMAS)
    if kind == 1:
        lark = f"start: /[a-{chr(98 + number % 20)}]{{1,{5 + number}}}(, [a-z]{{2,9}}){{0,3}}/"
    else:
        properties = {f"key{number}": {"type": "string", "maxLength": 8}, "n": {"enum": list(range(number))}}
        lark = f"start: %json {json.dumps({'type': 'object', 'properties': properties, 'required': ['n']})}"
        lark = lark if number else 'start: "{}"'
    return LoweredConstraint(provider="llguidance", grammar=lark, key=lark)


def request_of(rng: random.Random, name: str) -> EngineRequest:
    prompt = TOKENIZER.encode(rng.choice(STEMS) + f"question {rng.randrange(1000)}")
    if rng.random() < 0.02:
        prompt.insert(rng.randrange(len(prompt)), POISON)
    if rng.random() < 0.02:
        prompt.append(NOT_A_NUMBER)
    sampling = SamplingParams(
        temperature=rng.choice([0.0, 1.0]),
        seed=rng.randrange(1 << 30),
        presence_penalty=rng.choice([0.0, 0.0, 0.5]),
        logprobs=rng.choice([None, None, 3]),
        logit_bias=((POISON, -100.0), (NOT_A_NUMBER, -100.0)),
    )
    constraint = constraint_of(rng)
    thinking = ThinkingBudget(max_tokens=4, close_ids=tuple(TOKENIZER.encode("</think>")))
    return EngineRequest(
        request_id=name,
        prompt_ids=tuple(prompt),
        sampling=sampling,
        max_tokens=rng.randrange(1, 60),
        stop_ids=VOCABULARY.stop_ids,
        constraint=constraint,
        closing=LengthClosing() if rng.random() < 0.5 else None,
        thinking=thinking if constraint is None and rng.random() < 0.2 else None,
        priority=rng.choice([0, 0, 0, 1]),
        deadline_s=rng.choice([None, None, 0.05]) if rng.random() < 0.1 else None,
    )


def new_core(compiler: GrammarCompiler, config: EngineConfig) -> tuple[EngineCore, FakeRunner]:
    faults = Faults(poison_ids={POISON}, nan_after_ids={NOT_A_NUMBER})
    runner = FakeRunner(VOCABULARY.size, slots=8, context_tokens=600, max_batch_tokens=96, faults=faults)
    speculator = create_speculator(config, runner.info, TOKENIZER, lambda _config, _tokenizer: runner)
    return EngineCore(runner, compiler, VOCABULARY, config, speculator=speculator), runner


def disturb(soak: Soak, core: EngineCore, runner: FakeRunner) -> None:
    """What a step may find: cancels, preemptions, pauses and their ends, passes that fail."""
    rng = soak.rng
    names = list(soak.requests)
    if rng.random() < 0.02:
        core.abort(rng.choice(names))
    if rng.random() < 0.2:
        core.preempt(rng.choice(names))
    if rng.random() < 0.05:
        core.pause([rng.choice(names)])
    if rng.random() < 0.3:
        core.unpause(names)
    if rng.random() < 0.005:
        runner.faults.fail_launches = {runner.num_launches}


def collect(soak: Soak, core: EngineCore) -> None:
    for output in core.step():
        if output.request_id not in soak.requests:
            raise AssertionError(f"{output.request_id} has an output after its end, or never was")
        soak.ids.setdefault(output.request_id, []).extend(output.token_ids)
        if output.finish_reason is None:
            continue
        end = f"error {output.failure.code}" if output.failure else output.finish_reason
        soak.ends[end] += 1
        request, ids = soak.requests.pop(output.request_id), soak.ids.pop(output.request_id)
        if soak.rng.random() < 0.03 and not {POISON, NOT_A_NUMBER} & set(request.prompt_ids):
            soak.sample.append((request, ids, end))
    core.check()


def compare(soak: Soak, compiler: GrammarCompiler) -> int:
    """Check the sample against solo runs without drafts, forced tokens and caches; how many there were."""
    plain = replace(CONFIG, speculative=None, forced_tokens=False, prefix_cache=False, fairness_tokens=0)
    for request, ids, end in soak.sample:
        solo = Soak(soak.rng)
        core, _ = new_core(compiler, plain)
        core.submit(replace(request, deadline_s=None))
        solo.requests[request.request_id] = request
        expected: list[int] = []
        while not core.is_empty:
            for output in core.step():
                expected += output.token_ids
        is_whole = end in ("stop", "length")
        soak.num_wrong += ids != (expected if is_whole else expected[: len(ids)])
    num_compared = len(soak.sample)
    soak.sample.clear()
    return num_compared


def run(num_requests: int, seed: int, prompt_cache_bytes: int = CONFIG.prompt_cache_bytes) -> dict[str, object]:
    soak = Soak(random.Random(seed))
    cache = GrammarCache(CACHED_GRAMMARS_BYTES)
    compiler = GrammarCompiler(LLGuidanceProvider(TOKENIZER), cache)
    core, runner = new_core(compiler, replace(CONFIG, prompt_cache_bytes=prompt_cache_bytes))
    process = psutil.Process()
    started = time.perf_counter()
    num_sent = num_refused = num_compared = 0
    rss_in_between: list[int] = []
    while num_sent < num_requests or not core.is_empty:
        while num_sent < num_requests and len(soak.requests) < soak.rng.choice([4, 24, 70]):
            request = request_of(soak.rng, f"r{num_sent}")
            num_sent += 1
            try:
                core.submit(request)
            except InterlockError:
                num_refused += 1
                continue
            soak.requests[request.request_id] = request
            if num_sent % max(1, num_requests // 10) == 0:
                num_compared += compare(soak, compiler)
                gc.collect()
                rss_in_between.append(process.memory_info().rss)
        if soak.requests:
            disturb(soak, core, runner)
        collect(soak, core)
    num_compared += compare(soak, compiler)
    core.check()
    gc.collect()
    stats = core.stats()
    assert not soak.requests, f"{len(soak.requests)} requests have no end"
    assert sum(soak.ends.values()) + num_refused == num_requests
    assert (stats.num_running, stats.num_waiting) == (0, 0), "a sequence is stuck"
    return {
        "requests": num_requests,
        "seconds": round(time.perf_counter() - started, 1),
        "rss_growth_mib": round((process.memory_info().rss - rss_in_between[0]) / 2**20, 1),
        "rss_mib": [round(rss / 2**20, 1) for rss in rss_in_between],
        "ends": dict(soak.ends),
        "refused": num_refused,
        "compared_with_solo": num_compared,
        "wrong": soak.num_wrong,
        "steps": stats.num_steps,
        "preempted": stats.num_preempted,
        "states_saved": stats.num_states_saved,
        "states_restored": stats.num_states_restored,
        "cached_tokens": stats.num_cached_tokens,
        "prompt_tokens": stats.num_prompt_tokens,
        "forced": stats.num_forced_tokens,
        "drafted": stats.num_draft_tokens,
        "accepted": stats.num_accepted_tokens,
        "grammar_compiles": stats.num_grammar_compiles,
        "grammar_evictions": cache.num_evictions,
        "grammar_cache_bytes": stats.grammar_cache_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompt-cache-bytes", type=int, default=CONFIG.prompt_cache_bytes)
    arguments = parser.parse_args()
    finish("soak", run(arguments.requests, arguments.seed, arguments.prompt_cache_bytes))


if __name__ == "__main__":
    main()
