"""Work beside a computation: both run, both have ended at the end, and what either raises reaches the caller."""

from __future__ import annotations

import gc
import threading

import pytest

from interlock.runners.side_thread import SideThread


def test_both_run_at_the_same_time_on_two_threads():
    meeting = threading.Barrier(2, timeout=30)
    side = SideThread("beside")

    def work() -> int:
        meeting.wait()
        return threading.get_ident()

    assert side.run(work, meeting.wait) != threading.get_ident()


def test_the_same_thread_serves_all_calls():
    side = SideThread("beside")
    names = {side.run(threading.get_ident, lambda: None) for _ in range(3)}
    assert len(names) == 1


def test_what_the_work_raises_is_raised_once_the_computation_has_ended():
    side, computed = SideThread("beside"), []
    with pytest.raises(ZeroDivisionError):
        side.run(lambda: 1 // 0, lambda: computed.append(1))
    assert computed == [1]
    assert side.run(lambda: "again", lambda: None) == "again"


def test_what_the_computation_raises_is_raised_once_the_work_has_ended():
    side, worked = SideThread("beside"), []
    with pytest.raises(ZeroDivisionError):
        side.run(lambda: worked.append(1), lambda: 1 // 0)
    assert worked == [1]


def test_the_thread_ends_with_its_owner():
    side = SideThread("beside-for-a-while")
    thread = side.run(threading.current_thread, lambda: None)
    del side
    gc.collect()
    thread.join(timeout=30)
    assert not thread.is_alive()
