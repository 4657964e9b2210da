"""Who loses its slot to whom, and what that leaves as it was."""

from __future__ import annotations

import pytest

from interlock.errors import InterlockError


def running(b) -> set[str]:
    return {sequence.request_id for sequence in b.core._scheduler._running}


def solo(bench, prompt: str, **fields) -> list[int]:
    b = bench(prefix_cache=False, fairness_tokens=0)
    name = b.submit(prompt, **fields)
    b.run()
    return b.ids(name)


def test_a_higher_priority_takes_the_slot_of_the_last_of_the_lowest(bench):
    b = bench(slots=2)
    first, second = (b.submit(f"{i}>", max_tokens=30, stop_ids=()) for i in range(2))
    b.step()
    urgent = b.submit("now", priority=3, max_tokens=5, stop_ids=())
    b.step()
    assert running(b) == {first, urgent}
    b.run()
    assert b.ids(second) == solo(bench, "1>", max_tokens=30, stop_ids=())
    assert b.core.stats().num_preempted == 1


def test_an_equal_priority_does_not_take_a_slot_before_the_turn_is_over(bench):
    b = bench(slots=1, fairness_tokens=10)
    first = b.submit("a>", max_tokens=30, stop_ids=())
    b.step()
    second = b.submit("b>", max_tokens=30, stop_ids=())
    for _ in range(9):
        b.step()
    assert running(b) == {first}
    b.step()
    assert running(b) == {second}
    b.run()
    for name, prompt in ((first, "a>"), (second, "b>")):
        assert b.ids(name) == solo(bench, prompt, max_tokens=30, stop_ids=())


def test_a_turn_is_at_least_as_long_as_what_is_replayed_for_it(bench):
    b = bench(slots=1, fairness_tokens=1, budget=64)
    long = b.submit("x" * 40, max_tokens=60, stop_ids=())
    b.step()
    b.submit("b>", max_tokens=2, stop_ids=())
    for _ in range(39):
        b.step()
        assert running(b) == {long}
    b.step()
    assert running(b) != {long}
    b.run()


def test_nobody_starves_while_others_take_turns(bench):
    b = bench(slots=1, fairness_tokens=4)
    names = [b.submit(f"{i}>", max_tokens=40, stop_ids=()) for i in range(5)]
    for _ in range(60):
        b.step()
    assert all(len(b.ids(name)) >= 4 for name in names)
    b.run()
    assert [b.ids(name) for name in names] == [
        solo(bench, f"{i}>", max_tokens=40, stop_ids=()) for i in range(5)
    ]


def test_a_lower_priority_takes_no_turn_from_a_higher_one(bench):
    b = bench(slots=1, fairness_tokens=1)
    high = b.submit("a>", max_tokens=50, stop_ids=(), priority=1)
    b.step()
    low = b.submit("b>", max_tokens=3, stop_ids=())
    for _ in range(40):
        b.step()
    assert (len(b.ids(high)), b.ids(low)) == (41, [])
    b.run()
    assert b.finish(low) == "length"


def test_the_cache_is_never_fuller_than_its_limit(bench):
    b = bench(slots=6, max_kv_tokens=60, context_tokens=256, budget=32, fairness_tokens=0)
    names = [b.submit(f"{i}{'x' * i}>", max_tokens=30, stop_ids=()) for i in range(6)]
    while not b.core.is_empty:
        b.step()
        assert sum(len(b.runner.tokens(slot)) for slot in range(6)) <= 60
    assert b.core.stats().num_preempted > 0
    assert [b.ids(name) for name in names] == [
        solo(bench, f"{i}{'x' * i}>", max_tokens=30, stop_ids=()) for i in range(6)
    ]


def test_a_request_that_never_fits_the_limit_is_refused_or_cut_with_the_numbers(bench):
    b = bench(max_kv_tokens=20, context_tokens=256)
    with pytest.raises(InterlockError, match="21 tokens; the context holds 20"):
        b.submit("x" * 21)
    name = b.submit("x" * 15, max_tokens=100, stop_ids=())
    b.run()
    assert (len(b.ids(name)), b.finish(name)) == (5, "length")


def test_a_paused_request_makes_nothing_and_loses_nothing(bench):
    b = bench(slots=2, fairness_tokens=0)
    name, other = b.submit("a>", max_tokens=20, stop_ids=()), b.submit("b>", max_tokens=20, stop_ids=())
    for _ in range(3):
        b.step()
    b.core.pause([name, "nobody"])
    b.core.pause([name])
    b.check()
    for _ in range(4):
        b.step()
    assert (len(b.ids(name)), len(b.ids(other))) == (3, 7)
    b.core.unpause([name, other, "nobody"])
    b.run()
    assert b.ids(name) == solo(bench, "a>", max_tokens=20, stop_ids=())


@pytest.mark.parametrize("how", ["abort", "deadline", "all"])
def test_a_paused_request_can_end(bench, how: str):
    b = bench()
    name = b.submit("a>", max_tokens=20, deadline_s=5.0)
    b.step()
    b.core.pause([name])
    assert not b.core.has_work
    if how == "abort":
        b.core.abort(name)
    elif how == "all":
        b.core.fail_all("shutting_down", "the server is stopping")
    b.now = 6.0
    b.step()
    assert b.core.is_empty
    assert b.finish(name) in ("abort", "error request_timeout", "error shutting_down")


def test_preempting_what_does_not_run_does_nothing(bench):
    b = bench(slots=1)
    b.submit("a>")
    waiting = b.submit("b>")
    b.step()
    b.core.preempt(waiting)
    b.core.preempt("nobody")
    b.check()
    assert b.core.stats().num_preempted == 0
    b.run()


@pytest.mark.parametrize(
    ("resume_ids", "max_tokens"), [((1,) * 8, 8), ((1,) * 9, 8), ((300,), 8), ((1,) * 255, 300)]
)
def test_what_cannot_be_resumed_is_refused(bench, resume_ids, max_tokens: int):
    b = bench()
    with pytest.raises(InterlockError) as refused:
        b.submit("a>", resume_ids=resume_ids, max_tokens=max_tokens)
    assert refused.value.code == "invalid_value"
    assert b.core.is_empty


def test_output_that_its_grammar_does_not_take_ends_a_resumed_request(bench):
    b = bench()
    name = b.submit("a>", answers=["abc"], resume_ids=(ord("x"),))
    b.run()
    assert b.finish(name) == "error matcher_failed"
