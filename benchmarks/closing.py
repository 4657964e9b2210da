"""What closing answers on length costs a step: CPU time of the step's own thread, with closing and without.

    python benchmarks/closing.py [--model FILE] [--rounds 3]

What the numbers mean: eight documents of 80 tokens, each with a schema of its own, run beside a free request on a model that is
noise, so that nearly all of a step is masks, closing and sampling. ``step_ms`` is CPU time of ``EngineCore.step`` on its thread
(median, p99 and maximum over the steps of a run, the median of all rounds). Searches for endings run on another thread and are not in it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from common import finish
from interlock import env
from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import ConstraintSpec, JsonValue, LoweredConstraint
from interlock.core.engine import EngineRequest, LengthClosing
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.provision import demo
from interlock.runners.fake import FakeRunner, UniformLogits
from interlock.tokenization.load import describe

NUM_DOCUMENTS = 8
STRING = {"type": "string"}


def document(number: int, tokenizer: Tokenizer) -> LoweredConstraint:
    tag = {"properties": {"k": STRING, "v": {"enum": ["left", "right"]}}, "required": ["k", "v"]}
    properties = {
        f"name{number}": STRING,
        "age": {"type": "integer", "minimum": number},
        "tags": {"type": "array", "items": {"type": "object"} | tag},
    }
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return lower(ConstraintSpec(root=JsonValue(json.dumps(schema))), tokenizer.special_tokens)


def step_ms(compiler: GrammarCompiler, tokenizer: Tokenizer, closing: LengthClosing | None) -> list[float]:
    vocabulary = tokenizer.vocabulary
    logits = UniformLogits(vocabulary.size, 0)
    runner = FakeRunner(
        vocabulary.size, logits=logits, slots=NUM_DOCUMENTS + 1, max_batch_tokens=512, context_tokens=4000
    )
    core = EngineCore(runner, compiler, vocabulary, EngineConfig(model=Path("none"), mask_threads=1))
    for number in range(NUM_DOCUMENTS + 1):
        constraint = document(number, tokenizer) if number < NUM_DOCUMENTS else None
        if constraint is not None:
            compiler.prepare(constraint).result(60)
        core.submit(
            EngineRequest(
                request_id=str(number),
                prompt_ids=(1, 2, 3, number + 4),
                sampling=SamplingParams(temperature=1.0, seed=number),
                max_tokens=80,
                stop_ids=vocabulary.stop_ids if constraint else (),
                constraint=constraint,
                closing=closing if constraint else None,
            )
        )
    times = []
    while not core.is_empty:
        started = time.thread_time()
        core.step()
        times.append(1000 * (time.thread_time() - started))
    return times[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    model = arguments.model or demo.demo_model(env.cache_dir(), None)
    tokenizer = describe(model).tokenizer
    results: dict[str, dict[str, float]] = {}
    for name, closing in (("cut off", None), ("closed", LengthClosing())):
        rounds = []
        for _ in range(arguments.rounds):  # each with grammars of its own, so that each searches
            compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
            compiler.warm_up()
            times = step_ms(compiler, tokenizer, closing)
            rounds.append((statistics.median(times), float(np.percentile(times, 99)), max(times), sum(times)))
        figures = map(statistics.median, zip(*rounds, strict=True))
        results[name] = {
            key: round(one, 2) for key, one in zip(("median", "p99", "max", "sum"), figures, strict=True)
        }
    finish("closing", {"step_ms": results, "rounds": arguments.rounds})


if __name__ == "__main__":
    main()
