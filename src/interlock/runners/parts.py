"""How a runner that cannot compute any pass at once cuts it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Of each of ``num_slots`` neighbouring slots ``num_each`` tokens, computed together."""

    num_slots: int
    num_each: int

    @property
    def num_tokens(self) -> int:
        return self.num_slots * self.num_each


def parts(sizes: Mapping[int, int], max_tokens: int) -> Iterator[Part]:
    """The parts of a pass over ``sizes`` tokens of each slot, in their order; see ``RunnerInfo.max_part_tokens``."""
    if max_tokens == 0:
        yield Part(1, sum(sizes.values()))
        return
    left = {slot: size for slot, size in sizes.items() if size}
    while left:
        run = next(runs(left))[:max_tokens]
        num_each = min(*(left[slot] for slot in run), max_tokens // len(run))
        yield Part(len(run), num_each)
        for slot in run:
            left[slot] -= num_each
            if left[slot] == 0:
                del left[slot]


def runs(slots: Iterable[int]) -> Iterator[list[int]]:
    """Neighbouring slots, together, in rising order."""
    run: list[int] = []
    for slot in sorted(slots):
        if run and slot != run[-1] + 1:
            yield run
            run = []
        run.append(slot)
    if run:
        yield run
