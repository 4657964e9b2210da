from __future__ import annotations

from interlock.engine.restarts import RestartPolicy


def test_delays_grow_and_then_it_gives_up():
    policy = RestartPolicy()
    delays = [policy.delay_s(now) for now in range(6)]
    assert delays == [0.0, 0.25, 0.5, 1.0, 2.0, None]


def test_deaths_far_apart_are_forgotten():
    policy = RestartPolicy()
    assert [policy.delay_s(1000.0 * i) for i in range(20)] == [0.0] * 20
