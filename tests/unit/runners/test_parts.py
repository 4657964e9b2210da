"""How a pass is cut into parts of neighbouring slots with equally many tokens."""

from __future__ import annotations

import pytest

from interlock.runners.parts import parts


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({0: 1, 1: 1, 2: 1}, [(3, 1)]),
        ({2: 1, 0: 1, 1: 1}, [(3, 1)]),
        ({0: 1, 2: 1}, [(1, 1), (1, 1)]),
        ({0: 2, 1: 1, 2: 1}, [(3, 1), (1, 1)]),
        ({0: 1, 1: 4, 2: 3}, [(3, 1), (2, 2), (1, 1)]),
        ({0: 2, 1: 1, 2: 2}, [(3, 1), (1, 1), (1, 1)]),
        ({0: 20}, [(1, 8), (1, 8), (1, 4)]),
        ({0: 5, 1: 5, 2: 5}, [(3, 2), (3, 2), (3, 1)]),
        (dict.fromkeys(range(10), 1), [(8, 1), (2, 1)]),
        ({0: 0, 1: 1}, [(1, 1)]),
    ],
)
def test_parts_of_at_most_eight_tokens(sizes: dict[int, int], expected: list[tuple[int, int]]):
    found = [(part.num_slots, part.num_each) for part in parts(sizes, 8)]
    assert found == expected
    assert sum(part.num_tokens for part in parts(sizes, 8)) == sum(sizes.values())


def test_a_runner_without_parts_computes_a_pass_at_once():
    assert [part.num_tokens for part in parts({0: 100, 7: 1}, 0)] == [101]
