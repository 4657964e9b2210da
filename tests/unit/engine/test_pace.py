"""Prompts beside running streams are computed in pieces of about a fifth of a second."""

from __future__ import annotations

import pytest

from interlock.engine.pace import PrefillPace


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ([], 512),
        ([(512, 1.0)], 102),
        ([(512, 0.01)], 512),
        ([(512, 100.0)], 8),
        ([(4, 100.0), (512, 1.0)], 102),
        ([(100, 1.0), (300, 1.0)], 40),
    ],
    ids=["unknown", "measured", "fast machine", "slow machine", "a decode says nothing", "follows changes"],
)
def test_tokens_for_the_next_step(passes: list[tuple[int, float]], expected: int) -> None:
    pace = PrefillPace(512)
    for num_tokens, seconds in passes:
        pace.observe(num_tokens, seconds)

    assert pace.num_tokens == expected
