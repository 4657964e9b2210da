from __future__ import annotations

import numpy as np
import pytest

from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.kv_cache_manager import KVCacheManager
from interlock.engine.sequence import Sequence
from interlock.runners.base import StepBatch
from interlock.runners.fake import FakeRunner


def make_sequence(name: str) -> Sequence:
    request = EngineRequest(request_id=name, prompt_ids=(1, 2), sampling=SamplingParams(), max_tokens=4)
    return Sequence(request=request, arrival=0, max_output_tokens=4)


def test_slots_are_given_until_there_are_none():
    kv = KVCacheManager(FakeRunner(300, slots=2))
    a, b, c = (make_sequence(name) for name in "abc")
    assert (kv.allocate(a), kv.allocate(b), kv.allocate(c)) == (True, True, False)
    assert (a.slot, b.slot) == (0, 1)
    assert c.slot is None
    kv.check([a, b])
    kv.free(a)
    assert kv.allocate(c)
    assert c.slot == 0
    kv.check([b, c])


def test_freeing_twice_changes_nothing():
    kv = KVCacheManager(FakeRunner(300, slots=2))
    sequence = make_sequence("a")
    kv.allocate(sequence)
    kv.free(sequence)
    kv.free(sequence)
    kv.check([])
    assert kv.num_free_slots == 2


def test_a_slot_is_empty_when_it_is_given():
    runner = FakeRunner(300, slots=1)
    kv = KVCacheManager(runner)
    first, second = make_sequence("a"), make_sequence("b")
    kv.allocate(first)
    ids = np.array([5], dtype=np.int32)
    zero = np.zeros(1, dtype=np.int32)
    runner.launch(StepBatch(token_ids=ids, positions=zero, slots=zero, logits_at=zero)).discard()
    kv.free(first)
    kv.allocate(second)
    assert runner.tokens(0) == ()


def test_a_wrong_holder_is_found():
    kv = KVCacheManager(FakeRunner(300, slots=2))
    sequence = make_sequence("a")
    kv.allocate(sequence)
    with pytest.raises(AssertionError, match="slots"):
        kv.check([])
    sequence.slot = 0 if sequence.slot == 1 else 1
    with pytest.raises(AssertionError, match="slots"):
        kv.check([sequence])
