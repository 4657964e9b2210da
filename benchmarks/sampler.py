"""Selection alone: microseconds of CPU for one row of logits, for each kind of cut.

What the numbers mean: ``select`` of one token from a row of the demo model's vocabulary (49,152 ids). Logits are normal, some
tokens stand out as a model's do; ``flat`` is temperature 2, where half of the vocabulary is in the nucleus. Each row is
measured ``--rounds`` times and the fastest counts, then the mean over rows: what is interrupted by other work is left out.
Then the same as batches of ``--batches`` rows at once: whether a row costs more or less among others.
``stacked`` is the work that all rows share (largest, exponential, sum) done on one array for the whole batch, against
``row by row``, the same one after the other.

    python benchmarks/sampler.py --rows 64
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import finish
from interlock.constraints.bitmask import pack
from interlock.core.sampling import SamplingParams
from interlock.engine.heap import keep_freed_memory
from interlock.sampling.base import SamplingRow
from interlock.sampling.select import select, select_rows

VOCAB_SIZE = 49_152
NUM_OUTSTANDING = 30
CASES: dict[str, tuple[float | None, dict[str, Any]]] = {  # share of ids that the mask allows, parameters
    "greedy": (None, {"temperature": 0.0}),
    "no cut": (None, {}),
    "top-p": (None, {"top_p": 0.95, "temperature": 0.7}),
    "top-p flat": (None, {"top_p": 0.95, "temperature": 2.0}),
    "top-p, most allowed": (0.95, {"top_p": 0.95, "temperature": 0.7}),
    "top-p, few allowed": (0.01, {"top_p": 0.95, "temperature": 0.7}),
    "top-k": (None, {"top_k": 40}),
    "min-p": (None, {"min_p": 0.05}),
    "typical-p": (None, {"typical_p": 0.9}),
    "top-p, log probabilities": (None, {"top_p": 0.95, "temperature": 0.7, "logprobs": 5}),
}
Rows = list[NDArray[np.float32]]


def make_rows(num_rows: int) -> Rows:
    rng = np.random.default_rng(0)
    rows = [(2.5 * rng.standard_normal(VOCAB_SIZE)).astype(np.float32) for _ in range(num_rows)]
    for row in rows:
        row[rng.integers(0, VOCAB_SIZE, NUM_OUTSTANDING)] += np.linspace(
            4, 12, NUM_OUTSTANDING, dtype=np.float32
        )
    return rows


def fastest_us(call: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        call()
        best = min(best, time.thread_time() - start)
    return 1e6 * best


def case_us(rows: Rows, share: float | None, params: dict[str, Any], rounds: int) -> float:
    rng = np.random.default_rng(1)
    total = 0.0
    for index, logits in enumerate(rows):
        mask = None if share is None else pack(rng.random(VOCAB_SIZE) < share)
        row = SamplingRow(
            params=SamplingParams(seed=index, **params), position=index, vocab_size=VOCAB_SIZE, mask=mask
        )
        total += fastest_us(lambda logits=logits, row=row: select(logits, row), rounds)  # type: ignore[misc]
    return total / len(rows)


def batch_us(rows: Rows, share: float | None, params: dict[str, Any], size: int, rounds: int) -> float:
    """A row's part of ``select_rows`` over ``size`` rows."""
    rng = np.random.default_rng(1)
    logits = list(itertools.islice(itertools.cycle(rows), size))
    batch = [
        SamplingRow(
            params=SamplingParams(seed=index, **params),
            position=index,
            vocab_size=VOCAB_SIZE,
            mask=None if share is None else pack(rng.random(VOCAB_SIZE) < share),
        )
        for index in range(size)
    ]
    return fastest_us(lambda: select_rows(logits, batch), rounds) / size


def row_by_row(rows: Rows) -> None:
    for row in rows:
        weights = row - row.max()
        np.exp(weights, out=weights)
        weights.sum(dtype=np.float64)


def stacked(rows: Rows) -> None:
    weights = np.stack(rows)
    weights -= weights.max(axis=1, keepdims=True)
    np.exp(weights, out=weights)
    weights.sum(axis=1, dtype=np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 16, 64])
    arguments = parser.parse_args()
    keep_freed_memory()
    rows = make_rows(arguments.rows)
    results: dict[str, float] = {}
    batches: dict[str, dict[int, float]] = {}
    for name, (share, params) in CASES.items():
        results[name] = round(case_us(rows, share, params, arguments.rounds), 1)
        batches[name] = {
            size: round(batch_us(rows, share, params, size, arguments.rounds), 1) for size in arguments.batches
        }
        print(f"{name:26} {results[name]:8} us a row, in batches {batches[name]}", flush=True)
    shared = {
        kind.__name__: round(fastest_us(lambda kind=kind: kind(rows), arguments.rounds) / len(rows), 1)  # type: ignore[misc]
        for kind in (row_by_row, stacked)
    }
    print(f"the work all rows share, us a row: {shared}")
    finish("sampler", {"vocabulary": VOCAB_SIZE, "row_us": results, "batch_us": batches, "shared_us": shared})


if __name__ == "__main__":
    main()
