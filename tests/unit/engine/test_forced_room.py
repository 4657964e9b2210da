"""Forced tokens are computed together as far as that saves time."""

from __future__ import annotations

import pytest

from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.forced_room import within_room
from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence
from interlock.engine.step_cost import StepCost

PART_TOKENS = 48


def sequence(slot: int, num_forced: int, num_computed: int = 10) -> Sequence:
    made = Sequence(
        request=EngineRequest(
            request_id=f"r{slot}",
            prompt_ids=tuple(range(10)),
            sampling=SamplingParams(temperature=0.0),
            max_tokens=100,
        ),
        arrival=slot,
        max_output_tokens=100,
        slot=slot,
        num_computed_tokens=num_computed,
        num_new_tokens=num_forced,
    )
    for token_id in range(num_forced):
        made.append(token_id)
    return made


def room_of(pending: dict[int, int], cost: StepCost) -> list[int]:
    chunks = [Chunk(sequence(slot, num), num) for slot, num in pending.items()]
    return [chunk.num_tokens for chunk in within_room(chunks, cost)]


def usual_cost(max_part_tokens: int = PART_TOKENS) -> StepCost:
    """A part as such takes 20 ms, a token 5."""
    cost = StepCost(max_part_tokens)
    for _ in range(100):
        for sizes in ({0: 1}, {0: 8}, {0: 24}, dict.fromkeys(range(8), 1)):
            cost.observe(sizes, 1, 0.020 + 0.005 * sum(sizes.values()))
    return cost


ONES = dict.fromkeys(range(16), 1)


@pytest.mark.parametrize(
    ("pending", "expected"),
    [
        ({0: 9}, [9]),
        ({0: 5, 1: 1}, [5, 1]),
        ({0: 2, 1: 1}, [1, 1]),
        (ONES | {3: 3}, [1] * 16),
        (ONES | {3: 40}, [1, 1, 1, 40] + [1] * 12),
        (dict.fromkeys(range(16), 3), [3] * 16),
        (dict.fromkeys(range(16), 2) | {5: 4}, [2] * 16),
        (dict.fromkeys(range(16), 3) | {5: 1}, [1] * 6 + [3] * 10),
        (ONES | {0: 2, 5: 2, 10: 2}, [1] * 16),
        (ONES | dict.fromkeys(range(8), 3), [3] * 8 + [1] * 8),
        (ONES | dict.fromkeys(range(12), 4) | {4: 3}, [3] * 12 + [1] * 4),
        (ONES | {7: 2, 8: 40}, [1] * 8 + [40] + [1] * 7),
    ],
    ids=[
        "alone",
        "some beside one other",
        "one more beside one other",
        "a few beside many wait",
        "many beside many do not",
        "as many everywhere are one part",
        "what all have is computed, what one has more waits",
        "runs of neighbours share a part",
        "a part each would not pay",
        "half of the slots",
        "what neighbours have in common and no more",
        "a short one does not hold up its neighbour",
    ],
)
def test_as_many_as_save_time(pending: dict[int, int], expected: list[int]):
    assert room_of(pending, usual_cost()) == expected


@pytest.mark.parametrize(
    "cost", [StepCost(PART_TOKENS), usual_cost(0)], ids=["unknown cost", "one part a pass"]
)
def test_all_of_them_where_nothing_speaks_against_it(cost: StepCost):
    assert room_of(ONES | {3: 3}, cost) == [1, 1, 1, 3] + [1] * 12


def test_prompts_are_left_alone():
    prompt = Chunk(sequence(16, 1, num_computed=0), 11)
    chunks = [Chunk(sequence(slot, 2 if slot == 3 else 1), 2 if slot == 3 else 1) for slot in range(16)]
    kept = within_room([*chunks, prompt], usual_cost())
    assert [chunk.num_tokens for chunk in kept] == [1] * 16 + [11]
