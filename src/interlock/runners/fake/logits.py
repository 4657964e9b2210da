"""Logits without a model: each row is a pure function of the tokens before it, so batching, chunking and
replay cannot change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]

_MASK = (1 << 64) - 1
WANTED = 50.0  # above every unwanted logit by far, so that sampling at usual temperatures follows it too


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first ``length`` of ``tokens``, with a digest of them. Valid until the slot changes."""

    tokens: Sequence[int]
    length: int
    digest: int

    def ids(self) -> Sequence[int]:
        return self.tokens[: self.length]


class LogitsSource(Protocol):
    """Where a fake runner takes its logits from."""

    def row(self, prefix: Prefix) -> Logits:
        """float32 [num_logits] after ``prefix``. Not written to by the caller."""
        ...


def extend_digest(digest: int, token_id: int) -> int:
    """Digest of a sequence with one more token."""
    mixed = ((digest ^ (token_id + 1)) * 0x9E3779B97F4A7C15) & _MASK
    return mixed ^ (mixed >> 29)


class UniformLogits:
    """Logits uniform in [0, 1), so that all legal tokens are about equally likely.

    A row is a window of one fixed buffer at an offset that the prefix decides: no work per row, which leaves
    the engine's own time visible in benchmarks.
    """

    def __init__(self, num_logits: int, seed: int = 0) -> None:
        self._num_logits = num_logits
        self._buffer = np.random.Generator(np.random.Philox(seed)).random(2 * num_logits, dtype=np.float32)
        self._buffer.flags.writeable = False

    def row(self, prefix: Prefix) -> Logits:
        offset = prefix.digest % self._num_logits
        return self._buffer[offset : offset + self._num_logits]


class WantedLogits:
    """A function of the prefix names the tokens it wants, the rest is uniform.

    want: ids so far -> id: rank, a higher rank is wanted more. Ids that it names beat all others; a mask
    that forbids them all leaves the uniform choice.
    """

    def __init__(
        self, num_logits: int, want: Callable[[Sequence[int]], Mapping[int, float]], seed: int = 0
    ) -> None:
        self._base = UniformLogits(num_logits, seed)
        self._want = want

    def row(self, prefix: Prefix) -> Logits:
        values = self._base.row(prefix).copy()
        for token_id, rank in self._want(prefix.ids()).items():
            values[token_id] = WANTED * (1.0 + rank)
        return values
