from __future__ import annotations

import math

from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.resumption import Resumption
from interlock.engine.streams import Stream


def stream(name: str, *, has_token: bool = True, priority: int = 0) -> Stream:
    request = EngineRequest(
        request_id=name, prompt_ids=(1,), sampling=SamplingParams(), max_tokens=9, priority=priority
    )
    return Stream(request, deadline=math.inf, submitted=True, has_token=has_token)


def resume_all(resumption: Resumption) -> list[str]:
    """Names in the order in which they are resumed, each getting a token at once."""
    names = []
    while (resumed := resumption.next()) is not None:
        names.append(resumed.request.request_id)
        resumed.submitted = resumed.has_token = True
    return names


def test_each_waits_for_the_token_of_the_one_before():
    resumption = Resumption(2)
    a, b = stream("a"), stream("b")
    assert resumption.worker_died([a, b]) == []
    assert resumption.next() is a
    assert resumption.next() is None
    a.has_token = True
    assert resumption.next() is b
    b.closed = True
    assert resumption.next() is None


def test_who_had_no_token_yet_is_blamed_and_comes_last():
    resumption = Resumption(2)
    killer, others = stream("killer", has_token=False), [stream(f"o{i}") for i in range(3)]
    assert resumption.worker_died([killer, *others]) == []
    assert resume_all(resumption) == ["o0", "o1", "o2", "killer"]
    killer.has_token = False  # it kills again before its first token
    assert resumption.worker_died([killer, *others]) == [killer]
    assert resume_all(resumption) == ["o0", "o1", "o2"]


def test_everybody_is_blamed_when_all_were_running():
    resumption = Resumption(2)
    streams = [stream("a"), stream("b")]
    assert resumption.worker_died(streams) == []
    resume_all(resumption)
    assert resumption.worker_died(streams) == streams


def test_nobody_survives_more_than_twice_the_deaths():
    resumption = Resumption(2)
    old, survived = stream("old"), 0
    while old not in resumption.worker_died([old, stream("new", has_token=False)]):
        survived += 1
        resume_all(resumption)
    assert survived == 3


def test_nothing_is_resumed_after_one_death_when_one_is_too_many():
    resumption = Resumption(1)
    a = stream("a")
    assert resumption.worker_died([a]) == [a]
    assert resumption.next() is None


def test_a_higher_priority_goes_first():
    resumption = Resumption(2)
    resumption.worker_died([stream("a"), stream("b", priority=5)])
    assert resume_all(resumption) == ["b", "a"]


def test_a_paused_one_waits_until_its_reader_has_caught_up_and_holds_up_nobody():
    resumption = Resumption(2)
    a, b = stream("a"), stream("b")
    a.paused = True
    resumption.worker_died([a, b])
    assert resume_all(resumption) == ["b"]
    a.paused = False
    assert resume_all(resumption) == ["a"]


def test_who_still_waits_when_another_worker_dies_is_not_blamed_again():
    resumption = Resumption(2)
    a, b = stream("a"), stream("b")
    resumption.worker_died([a, b])
    first = resumption.next()
    assert first is a
    a.submitted = True
    resumption.worker_died([a])
    assert (a.blame, b.blame) == (4, 2)
    assert resume_all(resumption) == ["b"]
