"""Everything about the torch runner that only an accelerator can show, in one run of under five minutes and without a
network: the contract suite on the device, the step with and without graphs, how much of mask filling hides behind the
forward pass, and constrained against free throughput.

What the numbers mean: the model has random weights (``--model`` takes a folder instead) and a vocabulary of 128,000 tokens,
so its tokens are noise and its times are real. ``step_ms`` is the median of one decode step at the runner: ``host`` chooses
with numpy from logits that were copied, ``fused`` on the device, ``fixed_shapes`` on the device in few shapes, which on CUDA
are graphs. ``hidden_masks``: masks are filled as often as takes half a step (``fill_ms``); the share of that time by which
the step does not get longer. ``constrained_over_free`` is the median of pairs that alternate, through the whole engine, no forced tokens;
both produce the same number of tokens. ``same_tokens_in_all_modes`` can be false in bfloat16, whose logits depend on the
shape of a pass; with ``--dtype float32`` it has to be true. On a CPU sizes are reduced: that shows that the script works, nothing else.

    python benchmarks/gpu_check.py
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from common import ROOT, finish
from interlock.config import EngineConfig, TorchConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.mask_batch import MaskBatch
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.state import ConstraintState
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer, Vocabulary
from interlock.engine.core import EngineCore
from interlock.runners.base import StepBatch
from interlock.runners.torch.runner import TorchRunner
from interlock.sampling.base import SamplingRow
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe

GRAMMAR = LoweredConstraint(provider="llguidance", grammar="start: /[a-z]{1,6}( [a-z]{1,6}){400}/", key="words")
MODES = {"host": False, "fused": False, "fixed_shapes": True}
PROMPT_TOKENS = 64


@dataclass(frozen=True)
class Sizes:
    """What is run. hidden, layers, vocab: of the random model. steps: timed at the runner. tokens: of each request."""

    hidden: int
    layers: int
    vocab: int
    batches: tuple[int, ...]
    steps: int
    tokens: int
    rounds: int


LARGE = Sizes(1024, 16, 128_000, (1, 8, 32), 100, 96, 3)
SMALL = Sizes(128, 2, 16_000, (1, 4), 8, 8, 1)


class WideTokenizer:
    """Bytes, special tokens, and all words of up to four letters that there is room for; text is encoded as bytes."""

    def __init__(self, size: int) -> None:
        base = byte_tokenizer()
        words = itertools.chain.from_iterable(
            itertools.product(b"abcdefghijklmnopqrstuvwxyz ", repeat=n) for n in (2, 3, 4)
        )
        room = size - base.vocabulary.size
        known = base.vocabulary
        self._base = base
        self.vocabulary = Vocabulary(
            tokens=(*known.tokens, *(bytes(word) for word in itertools.islice(words, room))),
            special_ids=known.special_ids,
            control_ids=known.control_ids,
            stop_ids=known.stop_ids,
        )
        self.special_tokens = base.special_tokens
        self.encode = base.encode
        self.encode_text = base.encode_text

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self.vocabulary.tokens[one] for one in ids).decode("utf-8", "replace")


def random_model(folder: Path, sizes: Sizes, dtype: str) -> Path:
    """Weights that are noise."""
    config = transformers.LlamaConfig(
        vocab_size=sizes.vocab,
        hidden_size=sizes.hidden,
        intermediate_size=3 * sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.hidden // 64,
        num_key_value_heads=max(1, sizes.hidden // 256),
        max_position_embeddings=2048,
        initializer_range=0.1,
    )
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).save_pretrained(folder)
    return folder


def contract_suite(device: str) -> dict[str, Any]:
    """The contract suite of runners, on the device."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_runner.py"),
        *("-k", "torch", "--torch-device", device),
    ]
    start = time.perf_counter()
    result = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=200)
    lines = result.stdout.strip().splitlines() or [result.stderr.strip()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))][:10]
    return {
        "passed": result.returncode == 0,
        "summary": lines[-1],
        "failed": failed,
        "seconds": round(time.perf_counter() - start, 1),
    }


class Bench:
    """One runner in one mode, and steps over it."""

    def __init__(self, config: EngineConfig, tokenizer: Tokenizer) -> None:
        self.runner = TorchRunner(config, max_default_context_tokens=8192)
        self.tokenizer = tokenizer
        self._sampling = SamplingParams(temperature=1.0, seed=1)

    def steps(self, num_rows: int, num_steps: int, masks: Callable[[], list[Any]]) -> tuple[float, list[int]]:
        """Median seconds of a decode step, and the tokens of the first row."""
        for slot in range(num_rows):
            self.runner.truncate(slot, 0)
            self.runner.launch(self._batch([slot], 0, [[5] * PROMPT_TOKENS], logits=False)).discard()
        last, seconds, first_row = [5] * num_rows, [], []
        for step in range(num_steps):
            start = time.perf_counter()
            position = PROMPT_TOKENS + step
            forward = self.runner.launch(self._batch(range(num_rows), position, [[one] for one in last]))
            rows = [self._row(step, mask) for mask in masks()]
            last = [choice.token_id for choice in forward.select(rows).choices]
            seconds.append(time.perf_counter() - start)
            first_row.append(last[0])
        return statistics.median(seconds[num_steps // 4 :]), first_row

    def close(self) -> None:
        self.runner.close()

    def _row(self, step: int, mask: Any) -> SamplingRow:
        size = self.tokenizer.vocabulary.size
        return SamplingRow(params=self._sampling, position=step, vocab_size=size, mask=mask)

    @staticmethod
    def _batch(
        slots: Sequence[int], position: int, parts: list[list[int]], *, logits: bool = True
    ) -> StepBatch:
        sizes = [len(part) for part in parts]
        return StepBatch(
            token_ids=np.array([one for part in parts for one in part], dtype=np.int32),
            positions=np.concatenate([np.arange(position, position + size, dtype=np.int32) for size in sizes]),
            slots=np.repeat(np.array(list(slots), dtype=np.int32), sizes),
            logits_at=np.cumsum(sizes, dtype=np.int32) - 1 if logits else np.zeros(0, dtype=np.int32),
        )


class Masks:
    """Masks of real matchers, filled anew for each step as the engine does."""

    def __init__(self, tokenizer: Tokenizer, max_rows: int) -> None:
        grammar = LLGuidanceProvider(tokenizer).compile(GRAMMAR.grammar)
        self._states = [ConstraintState(grammar.matcher()) for _ in range(max_rows)]
        self._batch = MaskBatch(max_rows, tokenizer.vocabulary.size)

    def fill(self, num_rows: int) -> list[Any]:
        return [rows[0] for rows in self._batch.fill(self._states[:num_rows])]

    def fill_often(self, num_rows: int, times: int) -> list[Any]:
        for _ in range(times - 1):
            self.fill(num_rows)
        return self.fill(num_rows)


def at_the_runner(bench: Bench, masks: Masks, sizes: Sizes) -> dict[str, Any]:
    """Steps of each batch size, free and with masks, and how much of the masks is hidden."""
    figures: dict[str, Any] = {}
    for num_rows in sizes.batches:
        free, _ = bench.steps(num_rows, sizes.steps, lambda n=num_rows: [None] * n)
        masked, tokens = bench.steps(num_rows, sizes.steps, lambda n=num_rows: masks.fill(n))
        kept = masks.fill(num_rows)
        staged, _ = bench.steps(num_rows, sizes.steps, lambda kept=kept: kept)
        once = statistics.median(timed(lambda n=num_rows: masks.fill(n)) for _ in range(sizes.steps))
        times = max(1, round(staged / 2 / once))
        long, _ = bench.steps(num_rows, sizes.steps, lambda n=num_rows, k=times: masks.fill_often(n, k))
        figures[str(num_rows)] = {
            "free_step_ms": ms(free),
            "masked_step_ms": ms(masked),
            "masked_step_without_filling_ms": ms(staged),
            "fill_once_ms": ms(once),
            "fill_ms": ms(times * once),
            "long_step_ms": ms(long),
            "hidden_masks": round(1 - (long - staged) / (times * once), 2),
            "tokens": tokens[:8],
        }
    return figures


def through_the_engine(bench: Bench, config: EngineConfig, sizes: Sizes) -> dict[str, Any]:
    """Tokens per second of requests that run to the same length, free and constrained."""
    vocabulary = bench.tokenizer.vocabulary
    compiler = GrammarCompiler(LLGuidanceProvider(bench.tokenizer), GrammarCache(1 << 26))
    compiler.prepare(GRAMMAR).result(60)
    core = EngineCore(bench.runner, compiler, vocabulary, config)

    def rate(num: int, constraint: LoweredConstraint | None, name: str) -> float:
        for index in range(num):
            prompt = tuple((7 * index + one) % 250 for one in range(PROMPT_TOKENS))
            sampling = SamplingParams(temperature=1.0, seed=index)
            core.submit(
                EngineRequest(
                    request_id=f"{name}-{index}",
                    prompt_ids=prompt,
                    sampling=sampling,
                    max_tokens=sizes.tokens,
                    constraint=constraint,
                )
            )
        start, num_tokens = time.perf_counter(), 0
        while not core.is_empty:
            for output in core.step():
                assert output.failure is None, output.failure
                num_tokens += len(output.token_ids)
        assert num_tokens == num * sizes.tokens
        return num_tokens / (time.perf_counter() - start)

    figures = {}
    for num in sizes.batches:
        pairs = []
        for index in range(sizes.rounds + 1):  # the first one warms up
            order = [("free", None), ("constrained", GRAMMAR)]
            rates = {name: rate(num, one, f"{name}{index}") for name, one in order[:: 1 if index % 2 else -1]}
            pairs.append((rates["free"], rates["constrained"]))
        pairs = pairs[1:]
        figures[str(num)] = {
            "free_tokens_per_s": round(statistics.median(free for free, _ in pairs), 1),
            "constrained_tokens_per_s": round(statistics.median(constrained for _, constrained in pairs), 1),
            "constrained_over_free": round(
                statistics.median(constrained / free for free, constrained in pairs), 3
            ),
        }
    compiler.close()
    return figures


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default=None, help="default: bfloat16, on a CPU float32")
    parser.add_argument("--model", type=Path, default=None, help="a Hugging Face folder")
    parser.add_argument("--skip-contract", action="store_true")
    options = parser.parse_args()
    is_cpu = options.device == "cpu"
    sizes, dtype = (SMALL if is_cpu else LARGE), options.dtype or ("float32" if is_cpu else "bfloat16")
    results: dict[str, Any] = {"device": options.device, "torch": torch.__version__, "dtype": dtype}
    if not is_cpu:
        results["device_name"] = torch.cuda.get_device_name()
    if not options.skip_contract:
        results["contract"] = contract_suite(options.device)
        print("contract", results["contract"], flush=True)
    with tempfile.TemporaryDirectory() as work:
        folder = options.model or random_model(Path(work), sizes, dtype)
        tokenizer: Tokenizer = describe(folder).tokenizer if options.model else WideTokenizer(sizes.vocab)
        masks = Masks(tokenizer, max(sizes.batches))
        for mode, static_shapes in MODES.items():
            config = EngineConfig(
                model=folder,
                slots=max(sizes.batches),
                context_tokens=1024,
                max_batch_tokens=2048,
                max_waiting=max(sizes.batches),
                forced_tokens=False,
                prefix_cache=False,
                torch=TorchConfig(
                    device=options.device, dtype=dtype, static_shapes=static_shapes, fused=mode != "host"
                ),
            )
            bench = Bench(config, tokenizer)
            results[mode] = {"runner": at_the_runner(bench, masks, sizes)}
            if mode != "host":
                results[mode]["engine"] = through_the_engine(bench, config, sizes)
            bench.close()
            print(mode, results[mode], flush=True)
    said = [[one["tokens"] for one in results[mode]["runner"].values()] for mode in MODES]
    results["same_tokens_in_all_modes"] = all(one == said[0] for one in said)
    finish("gpu_check", results)


if __name__ == "__main__":
    main()
