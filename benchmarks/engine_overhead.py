"""The engine's own time in a step: everything but the model, which is a runner that computes nothing.

What the numbers mean: microseconds of one ``EngineCore.step`` that decodes one token for each of 1, 8 and 64 sequences,
with the vocabulary of the demo model (49,152 ids). It holds scheduling, batch set-up, masks, selection
(a pass over the logits of each row), commit and output objects; nothing overlaps with a model, so it is an upper bound of
what a step costs beside the forward pass. ``--clock cpu`` counts CPU time, for a machine that is busy with other things.

    python benchmarks/engine_overhead.py --rounds 7 --steps 200
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import finish
from interlock import env
from interlock.config import EngineConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.engine.heap import keep_freed_memory
from interlock.provision.demo import demo_model
from interlock.runners.fake import FakeRunner, Prefix
from interlock.tokenization.load import describe

# Strings without end: as in most of an answer, nearly all tokens are allowed, some are not.
STRINGS = 'start: (STRING ",")+ "\\x01"\nSTRING: /"[^"\\\\\\x00-\\x1f]*"/\n'
GREEDY, SAMPLED = SamplingParams(temperature=0.0), SamplingParams(temperature=0.8, top_p=0.95, seed=7)
PROMPT_TOKENS = 32
WARM_STEPS = 20
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


class PeakedLogits:
    """Logits as a model's: normal with a wide spread, so that few tokens hold most of the mass. A row is a window of
    one buffer, which costs nothing."""

    def __init__(self, num_logits: int) -> None:
        self._num_logits = num_logits
        self._buffer = 4 * np.random.default_rng(0).standard_normal(2 * num_logits, dtype=np.float32)

    def row(self, prefix: Prefix) -> NDArray[np.float32]:
        offset = prefix.digest % self._num_logits
        return self._buffer[offset : offset + self._num_logits]


class Bench:
    """A core over the runner without a model."""

    def __init__(self, tokenizer: Tokenizer, num_sequences: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokenizer = tokenizer
        self._compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
        self._logits = PeakedLogits(tokenizer.vocabulary.size)
        self._num_sequences = num_sequences

    def step_s(self, kind: str, steps: int, seed: int) -> float:
        """Median seconds of a step while all sequences decode. kind: free, sampled or constrained."""
        size = self._tokenizer.vocabulary.size
        runner = FakeRunner(
            size,
            logits=self._logits,
            slots=self._num_sequences,
            max_batch_tokens=64 * PROMPT_TOKENS,
        )
        config = EngineConfig(model=Path("none"), slots=self._num_sequences)
        core = EngineCore(runner, self._compiler, self._tokenizer.vocabulary, config)
        constraint = LoweredConstraint(provider="llguidance", grammar=STRINGS, key=STRINGS)
        self._compiler.prepare(constraint).result(30)
        for i in range(self._num_sequences):
            core.submit(
                EngineRequest(
                    request_id=f"r{i}",
                    prompt_ids=tuple(1 + (seed * 7919 + i * 31 + j) % 200 for j in range(PROMPT_TOKENS)),
                    sampling=SAMPLED if kind == "sampled" else GREEDY,
                    max_tokens=steps + 2 * WARM_STEPS,
                    constraint=constraint if kind == "constrained" else None,
                )
            )
        times = []
        for number in range(steps + WARM_STEPS):
            start = self._clock()
            outputs = core.step()
            seconds = self._clock() - start
            if number >= WARM_STEPS and len(outputs) >= 7 / 8 * self._num_sequences:  # some have ended
                times.append(seconds)
        core.fail_all("shutting_down", "measured")
        core.step()
        return statistics.fmean(times) if self._clock is time.process_time else statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--sequences", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    arguments = parser.parse_args()
    keep_freed_memory()
    tokenizer = describe(demo_model(env.cache_dir(), None)).tokenizer
    results: dict[str, dict[str, float]] = {}
    for count in arguments.sequences:
        bench = Bench(tokenizer, count, CLOCKS[arguments.clock])
        kinds = ("free", "sampled", "constrained")
        rounds = [
            {kind: bench.step_s(kind, arguments.steps, number) for kind in kinds}
            for number in range(arguments.rounds)
        ]
        results[str(count)] = {
            kind: round(1e6 * statistics.median(one[kind] for one in rounds), 1) for kind in kinds
        }
        print(f"{count} sequences, microseconds a step: {results[str(count)]}", flush=True)
    finish("engine_overhead", {"vocabulary": tokenizer.vocabulary.size, "step_us": results})


if __name__ == "__main__":
    main()
