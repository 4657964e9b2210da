from __future__ import annotations

from typing import Any

import pytest

from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.kv_cache_manager import KVCacheManager
from interlock.engine.scheduler import Chunk, Scheduler
from interlock.engine.sequence import Sequence, SequenceStatus
from interlock.errors import InterlockError
from interlock.runners.fake import FakeRunner


def make_scheduler(*, slots: int = 4, budget: int = 16, max_kv_tokens: int = 0, **options: Any) -> Scheduler:
    """Nothing is really computed, so nothing can be reused."""
    kv = KVCacheManager(FakeRunner(300, slots=slots), max_tokens=max_kv_tokens, prefix_cache=False)
    return Scheduler(kv, max_batch_tokens=budget, **({"max_waiting": 8} | options))


def make_sequence(
    name: str, num_prompt: int, *, arrival: int = 0, priority: int = 0, grammar: bool = False
) -> Sequence:
    request = EngineRequest(
        request_id=name,
        prompt_ids=tuple(range(1, num_prompt + 1)),
        sampling=SamplingParams(),
        max_tokens=8,
        priority=priority,
    )
    sequence = Sequence(request=request, arrival=arrival, max_output_tokens=8)
    if grammar:
        sequence.status = SequenceStatus.WAITING_FOR_GRAMMAR
    return sequence


def run(scheduler: Scheduler, chunks: list[Chunk]) -> dict[str, int]:
    """Compute ``chunks`` as the engine would; name -> tokens computed."""
    for chunk in chunks:
        samples = chunk.needs_logits
        chunk.sequence.num_computed_tokens += chunk.num_tokens
        if samples:
            chunk.sequence.append(7)
    scheduler.check()
    return {chunk.sequence.request_id: chunk.num_tokens for chunk in chunks}


def test_a_long_prompt_is_computed_in_chunks_of_the_budget():
    scheduler = make_scheduler(budget=16)
    scheduler.add(make_sequence("a", 40))
    assert [run(scheduler, scheduler.schedule()) for _ in range(4)] == [
        {"a": 16},
        {"a": 16},
        {"a": 8},
        {"a": 1},
    ]


def test_prompts_get_a_share_of_the_budget_while_others_decode():
    scheduler = make_scheduler(budget=16)
    scheduler.add(make_sequence("a", 2))
    run(scheduler, scheduler.schedule())
    scheduler.add(make_sequence("b", 9, arrival=1))
    assert [run(scheduler, scheduler.schedule()) for _ in range(4)] == [
        {"a": 1, "b": 4},
        {"a": 1, "b": 4},
        {"a": 1, "b": 1},
        {"a": 1, "b": 1},
    ]


def test_decodes_do_not_starve_a_prompt_nor_each_other_when_the_budget_is_small():
    scheduler = make_scheduler(slots=6, budget=4)
    for i in range(5):
        scheduler.add(make_sequence(f"d{i}", 1, arrival=i))
    served = {f"d{i}": 0 for i in range(5)} | {"p": 0}
    scheduler.add(make_sequence("p", 10, arrival=9))
    for _ in range(10):
        for name, num_tokens in run(scheduler, scheduler.schedule()).items():
            served[name] += num_tokens
    assert served["p"] >= 9
    decodes = [served[f"d{i}"] for i in range(5)]
    assert min(decodes) >= 5
    assert max(decodes) - min(decodes) <= 1


def test_priority_goes_before_arrival():
    scheduler = make_scheduler(slots=2, budget=8)
    for name, arrival, priority in [("late", 2, 0), ("early", 1, 0), ("urgent", 3, 5)]:
        scheduler.add(make_sequence(name, 8, arrival=arrival, priority=priority))
    assert run(scheduler, scheduler.schedule()) == {"urgent": 8}
    assert run(scheduler, scheduler.schedule()) == {"urgent": 1, "early": 2}


def test_a_sequence_without_its_grammar_blocks_nobody_and_keeps_its_place():
    scheduler = make_scheduler(slots=1)
    first = make_sequence("first", 2, arrival=0, grammar=True)
    scheduler.add(first)
    assert not scheduler.has_work
    scheduler.add(make_sequence("second", 2, arrival=1))
    scheduler.add(make_sequence("third", 2, arrival=2))
    assert run(scheduler, scheduler.schedule()) == {"second": 2}
    scheduler.grammar_ready(first)
    scheduler.check()
    assert scheduler.num_waiting == 2
    scheduler.remove(next(iter(scheduler.schedule())).sequence)
    assert run(scheduler, scheduler.schedule()) == {"first": 2}


def test_too_many_waiting_requests_are_refused():
    scheduler = make_scheduler(slots=1, max_waiting=1)
    scheduler.add(make_sequence("a", 2))
    scheduler.add(make_sequence("b", 2, grammar=True))
    with pytest.raises(InterlockError) as refused:
        scheduler.add(make_sequence("c", 2))
    assert refused.value.code == "overloaded"
    scheduler.check()


@pytest.mark.parametrize("status", list(SequenceStatus)[:4])
def test_a_removed_sequence_leaves_nothing_behind(status: SequenceStatus):
    scheduler = make_scheduler(slots=1)
    if status is SequenceStatus.WAITING:
        scheduler.add(make_sequence("holder", 2))
        scheduler.schedule()
    sequence = make_sequence("a", 20, arrival=1, grammar=status is SequenceStatus.WAITING_FOR_GRAMMAR)
    scheduler.add(sequence)
    scheduler.schedule()
    if status is SequenceStatus.PAUSED:
        scheduler.pause(sequence)
    assert sequence.status is status
    scheduler.remove(sequence)
    scheduler.check()
    assert sequence.status is SequenceStatus.FINISHED
    assert sequence.slot is None
    assert scheduler.num_waiting == 0


def test_a_restarted_sequence_replays_prompt_and_output():
    scheduler = make_scheduler(budget=16)
    sequence = make_sequence("a", 5)
    scheduler.add(sequence)
    for _ in range(3):
        run(scheduler, scheduler.schedule())
    scheduler.restart(sequence)
    scheduler.check()
    assert run(scheduler, scheduler.schedule()) == {"a": 8}
    assert sequence.num_output_tokens == 4


def test_a_step_can_be_restricted_to_some_sequences():
    scheduler = make_scheduler()
    sequences = [make_sequence(name, 3, arrival=i) for i, name in enumerate("abc")]
    for sequence in sequences:
        scheduler.add(sequence)
    run(scheduler, scheduler.schedule())
    assert run(scheduler, scheduler.schedule(only=[sequences[1]])) == {"b": 1}


def test_a_budget_without_room_for_both_kinds_is_refused():
    with pytest.raises(ValueError, match="2 tokens"):
        make_scheduler(budget=1)
