"""A worker has hung when it does not answer, or has work and computes no step."""

from __future__ import annotations

import pytest

from interlock.core.engine import EngineStats
from interlock.engine.watchdog import Watchdog


def running(num_steps: int) -> EngineStats:
    return EngineStats(num_running=1, num_steps=num_steps)


IDLE = EngineStats()


@pytest.mark.parametrize(
    ("answers", "hung_at"),
    [
        ({}, 10),
        ({3: IDLE}, 13),
        ({3: running(7), 6: running(7), 9: running(7), 12: running(7)}, 13),
        ({3: running(7), 6: running(8), 9: running(8), 12: running(8), 15: running(8)}, 16),
        ({3: running(7), 6: IDLE, 9: IDLE}, 19),
    ],
    ids=[
        "never answers",
        "stops answering",
        "answers but computes nothing",
        "stops computing",
        "idle is no hang",
    ],
)
def test_hung_ten_seconds_after_the_last_progress(answers: dict[int, EngineStats], hung_at: int):
    watchdog = Watchdog(10.0, 0.0)
    now = 0
    while not watchdog.has_hung(now):
        now += 1
        if now in answers:
            watchdog.saw(answers[now], now)
    assert now == hung_at


def test_the_time_that_a_worker_loads_does_not_count():
    watchdog = Watchdog(10.0, 0.0)
    watchdog.not_watching(100.0)
    assert not watchdog.has_hung(109.0)
    assert watchdog.has_hung(110.0)
