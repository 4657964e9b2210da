"""What a step costs is learnt from the steps."""

from __future__ import annotations

import pytest

from interlock.engine.step_cost import StepCost


def test_a_cost_is_learnt_and_outliers_are_not():
    cost = StepCost(max_part_tokens=8)
    assert not cost.is_known
    for _ in range(60):
        for sizes, rows, parts, several in (
            ({0: 1}, 1, 1, 0),
            ({0: 4}, 4, 1, 1),
            ({0: 8}, 1, 1, 1),
            ({0: 4, 1: 1}, 2, 2, 2),
            ({0: 1, 2: 1}, 2, 2, 0),
        ):
            seconds = 0.010 * parts + 0.002 * several + 0.001 * sum(sizes.values()) + 0.002 * rows
            cost.observe(sizes, rows, seconds)
        cost.observe({0: 1}, 1, 5.0)
    assert cost.seconds({0: 6}, 3) == pytest.approx(0.024, rel=0.1)
    assert cost.seconds({0: 2, 3: 4}, 2) == pytest.approx(0.034, rel=0.1)


def test_a_step_held_up_is_not_believed_though_it_is_looked_at_late():
    cost = StepCost()
    cost.observe({0: 1}, 1, 0.01)
    cost.observe({0: 1}, 1, 5.0)
    cost.observe({0: 1}, 1, 0.01)
    assert cost.is_known
    assert cost.seconds({0: 1}, 1) == pytest.approx(0.01, rel=0.1)


def test_a_machine_that_became_slower_is_believed_after_a_while():
    cost = StepCost()
    for _ in range(20):
        cost.observe({0: 1}, 1, 0.01)
    for _ in range(400):
        cost.observe({0: 1}, 1, 0.1)
    assert cost.seconds({0: 1}, 1) == pytest.approx(0.1, rel=0.1)


def test_steps_of_one_kind_say_nothing_about_others():
    cost = StepCost()
    for _ in range(2000):
        cost.observe({0: 1}, 1, 0.0095)
    assert cost.seconds({0: 1}, 1) == pytest.approx(0.0095, rel=0.05)
    assert cost.seconds({0: 1, 1: 1}, 2) == pytest.approx(0.0165, rel=0.05)  # as on any CPU


def test_steps_of_any_size_count_alike():
    """Long prompts are a thousand times the work of a token; the cost of short steps is not lost beside them."""
    cost = StepCost(max_part_tokens=48)
    for _ in range(60):
        cost.observe({0: 480}, 1, 10 * 0.3)
        cost.observe({0: 1}, 1, 0.02)
    assert cost.seconds({0: 1}, 1) == pytest.approx(0.02, rel=0.1)
    assert cost.seconds({0: 480}, 1) == pytest.approx(3.0, rel=0.1)
