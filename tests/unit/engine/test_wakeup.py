from __future__ import annotations

import select
import threading

from interlock.engine.wakeup import Wakeup


def is_readable(wakeup: Wakeup, timeout_s: float = 0.0) -> bool:
    return bool(select.select([wakeup.fileno()], [], [], timeout_s)[0])


def test_set_from_a_thread_wakes_and_clear_ends_it():
    wakeup = Wakeup()
    assert not is_readable(wakeup)
    thread = threading.Thread(target=wakeup.set)
    thread.start()
    assert is_readable(wakeup, 10.0)
    thread.join()
    wakeup.clear()
    assert not is_readable(wakeup)
    wakeup.close()


def test_set_never_blocks():
    wakeup = Wakeup()
    for _ in range(100_000):
        wakeup.set()
    wakeup.clear()
    assert not is_readable(wakeup)
    wakeup.close()
