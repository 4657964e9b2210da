"""What slots held is kept in the host's memory, and comes back instead of being computed again."""

from __future__ import annotations

import itertools
import random

import pytest

from interlock.core.sampling import SamplingParams
from interlock.engine import kv_cache_manager
from interlock.engine.prompt_cache import BLOCK_TOKENS, PromptCache
from interlock.runners.base import RunnerCapabilities, SavedState
from interlock.runners.fake import Faults

MUCH = 1 << 20
PROMPTS = [f"{i:02d} schemas come again, each with words of its own >" * 2 for i in range(20)]
CANNOT_SAVE = RunnerCapabilities(partial_rollback=True, prefix_copy=True, bit_identical=True)
CANNOT_COPY = RunnerCapabilities(partial_rollback=True, saved_states=True, bit_identical=True)


def cycle(bench, times: int, **options):
    """Each of ``PROMPTS`` so many times, in turn; ids by round."""
    b = bench(slots=2, context_tokens=512, budget=64, max_waiting=99, **options)
    rounds = []
    for _ in range(times):
        names = [b.submit(prompt, sampling=SamplingParams(seed=3)) for prompt in PROMPTS]
        b.run()
        rounds.append([b.ids(name) for name in names])
    return b, rounds


def test_prompts_that_come_again_are_computed_once_whatever_the_slots_hold(bench):
    b, rounds = cycle(bench, 4, prompt_cache_bytes=MUCH)
    without, expected = cycle(bench, 4)
    num_tokens = sum(map(len, PROMPTS))
    stats = b.core.stats()
    assert rounds == expected
    assert num_tokens <= stats.num_prompt_tokens <= num_tokens + 3 * len(PROMPTS)  # the last token of each
    assert without.core.stats().num_prompt_tokens > 3.5 * num_tokens
    assert stats.num_cached_tokens == 4 * num_tokens - stats.num_prompt_tokens
    assert stats.num_states_restored >= 3 * len(PROMPTS) - 2
    assert stats.num_restored_tokens >= stats.num_states_restored * 100
    assert stats.num_states_saved == len(PROMPTS)
    assert stats.num_states_evicted == 0
    assert stats.prompt_cache_bytes > num_tokens


@pytest.mark.parametrize("options", [{"capabilities": CANNOT_SAVE}, {"prefix_cache": False}, {}])
def test_nothing_is_kept_where_that_cannot_be_or_is_off(bench, options):
    b, _ = cycle(bench, 1, prompt_cache_bytes=MUCH if options else 0, **options)
    assert (b.core.stats().num_states_saved, b.core.stats().prompt_cache_bytes) == (0, 0)


def test_one_state_serves_several_slots(bench):
    b = bench(slots=2, context_tokens=512, budget=64, prompt_cache_bytes=MUCH, capabilities=CANNOT_COPY)
    for prompt in PROMPTS[:3]:
        b.submit(prompt)
        b.run()
    names = [b.submit(PROMPTS[0] + tail) for tail in "ab"]
    b.run()
    assert [b.outputs[name][-1].num_cached_tokens for name in names] == [len(PROMPTS[0])] * 2


def test_the_budget_is_never_exceeded_and_what_was_used_longest_ago_goes(bench):
    b, rounds = cycle(bench, 3, prompt_cache_bytes=60_000)  # the integrity checks look at it in every step
    _, expected = cycle(bench, 3)
    stats = b.core.stats()
    assert rounds == expected
    assert stats.num_states_evicted > 20
    assert stats.prompt_cache_bytes <= 60_000


@pytest.mark.parametrize("fault", ["fail_restores", "no_memory"])
def test_a_state_that_cannot_be_saved_or_restored_costs_only_time(bench, fault: str):
    b, rounds = cycle(bench, 2, prompt_cache_bytes=MUCH, faults=Faults(**{fault: True}))
    _, expected = cycle(bench, 2)
    assert rounds == expected
    assert b.core.stats().num_states_restored == 0


def test_a_preempted_sequence_goes_on_from_its_state(bench):
    b = bench(slots=1, context_tokens=512, budget=64, prompt_cache_bytes=MUCH, fairness_tokens=0)
    long = b.submit(PROMPTS[0], max_tokens=50)
    for _ in range(20):
        b.step()
    urgent = b.submit(PROMPTS[1], priority=1)
    b.run()
    assert b.core.stats().num_preempted == 1
    assert b.core.stats().num_restored_tokens > len(PROMPTS[0])
    solo = bench(slots=2, context_tokens=512, budget=64)
    expected = [solo.submit(PROMPTS[0], max_tokens=50), solo.submit(PROMPTS[1])]
    solo.run()
    assert [b.ids(long), b.ids(urgent)] == [solo.ids(name) for name in expected]


@pytest.mark.parametrize("faults", [Faults(nan_after_ids={250}), Faults(poison_ids={250})])
def test_what_a_failure_left_is_not_saved(bench, faults: Faults):
    b = bench(slots=1, context_tokens=512, budget=64, prompt_cache_bytes=MUCH, faults=faults)
    b.submit((*map(ord, PROMPTS[0]), 250))
    b.run()
    b.submit(PROMPTS[1])
    b.run()
    assert b.core.stats().num_states_saved == 0


def test_an_exception_out_of_a_step_empties_the_cache(bench):
    b, _ = cycle(bench, 1, prompt_cache_bytes=MUCH)
    assert b.core.stats().prompt_cache_bytes
    b.core.reset("broken")
    assert b.core.stats().prompt_cache_bytes == 0
    b.core.check()


def test_a_conversation_that_grows_replaces_its_earlier_states(bench):
    b = bench(slots=1, context_tokens=1024, budget=64, prompt_cache_bytes=MUCH)
    histories = [list(map(ord, PROMPTS[i])) for i in range(2)]
    for turn in range(6):
        for ids in histories:
            ids += map(ord, f"turn {turn} says something that is longer than a block >")
            name = b.submit(tuple(ids), stop_ids=())
            b.run()
            ids += b.ids(name)
    assert b.runner.num_computed_tokens <= sum(map(len, histories))
    assert b.core.stats().prompt_cache_bytes <= 100 * sum(map(len, histories))


@pytest.mark.parametrize("seed", range(4))
def test_any_mix_gives_the_solo_outputs(bench, seed: int):
    rng = random.Random(seed)
    stems = [prompt[: rng.randrange(30, 100)] for prompt in PROMPTS[:6]]
    prompts = [rng.choice(stems) + "".join(rng.choices("ab", k=rng.randrange(50))) for _ in range(40)]
    solo = bench(prefix_cache=False, slots=1, context_tokens=300, max_waiting=99)
    b = bench(
        slots=rng.choice([1, 2, 5]),
        budget=rng.choice([16, 64]),
        context_tokens=300,
        max_waiting=99,
        copy_cost_tokens=rng.choice([0, 10]),
        max_kv_tokens=rng.choice([0, 300, 500]),
        fairness_tokens=rng.choice([0, 3]),
        capabilities=rng.choice([None, CANNOT_COPY]),
        prompt_cache_bytes=rng.choice([20_000, 60_000, MUCH]),
    )
    fields = [{"sampling": SamplingParams(seed=i), "max_tokens": rng.randrange(1, 40)} for i in range(40)]
    expected = [solo.submit(prompt, **field) for prompt, field in zip(prompts, fields, strict=True)]
    solo.run()
    names = []
    for prompt, field in zip(prompts, fields, strict=True):
        names.append(b.submit(prompt, priority=rng.randrange(2), **field))
        for _ in range(rng.randrange(4)):
            b.step()
        if rng.random() < 0.1:
            b.core.preempt(rng.choice(names))
    b.run()
    assert [b.ids(name) for name in names] == [solo.ids(name) for name in expected]
    assert b.core.stats().num_states_saved > 0


def saved_in_each_step(b) -> list[int]:
    saved = [b.core.stats().num_states_saved]
    while not b.core.is_empty:
        b.step()
        saved.append(b.core.stats().num_states_saved)
    return [after - before for before, after in itertools.pairwise(saved)]


def test_many_that_come_at_once_make_one_step_save_little(bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kv_cache_manager, "MOST_MOVED", 150)
    b = bench(slots=4, context_tokens=512, budget=64, prompt_cache_bytes=MUCH)
    solo = bench(slots=1, context_tokens=512, budget=64)
    for some in (PROMPTS[:4], PROMPTS[4:8], PROMPTS[:4]):
        names = [b.submit(prompt) for prompt in some]
        expected = [solo.submit(prompt) for prompt in some]
        assert max(saved_in_each_step(b)) <= 2, "a third state begins behind 150 tokens"
        solo.run()
        assert [b.ids(name) for name in names] == [solo.ids(name) for name in expected]
    assert b.core.stats().num_states_saved == 8
    assert b.core.stats().num_states_restored == 4


def test_left_overs_that_must_go_at_once_are_not_all_saved(bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kv_cache_manager, "MOST_MOVED", 50)
    b = bench(slots=4, context_tokens=512, budget=64, max_kv_tokens=480, prompt_cache_bytes=MUCH)
    for prompt in PROMPTS[:3]:
        b.submit(prompt)
        b.run()
    b.submit(PROMPTS[3] + "x" * 360)
    assert max(saved_in_each_step(b)) == 1
    assert b.core.stats().num_states_saved < 3


def state_of(token_ids: list[int]) -> SavedState:
    return SavedState(num_tokens=len(token_ids), num_bytes=len(token_ids), data=None)


def filled(*prompts: list[int], max_bytes: int = 1000) -> PromptCache:
    cache = PromptCache(max_bytes)
    for token_ids in prompts:
        cache.add(token_ids, state_of(token_ids))
        cache.check()
    return cache


COMMON = list(range(100))


def test_the_longest_common_prefix_is_found():
    cache = filled([*COMMON, 1, 2, 3], [*COMMON, 1, 2, 9], [*COMMON[:50], 7])
    for token_ids, limit, expected in [
        ([*COMMON, 1, 2, 3, 4], 200, 103),
        ([*COMMON, 1, 2, 9, 4], 200, 103),
        ([*COMMON, 1, 2, 9, 4], 102, 102),
        ([*COMMON[:70], 5], 71, 70),
        ([*COMMON[: BLOCK_TOKENS - 1], 5], 99, 0),
        ([5, *COMMON], 101, 0),
        ([], 0, 0),
    ]:
        found, num_common = cache.find(token_ids, limit if limit < len(token_ids) else len(token_ids))
        assert num_common == expected
        assert (found is None) == (expected == 0)


def test_what_is_saved_already_is_not_wanted_again_but_counts_as_used():
    first, second = COMMON, list(range(500, 600))
    cache = filled(first, second, max_bytes=250)
    longer = [*first, *range(BLOCK_TOKENS + 5)]
    assert not cache.wants(first[:90], 0, 90)
    assert not cache.wants([*first, 1], 0, 101)
    assert cache.wants(longer, 0, 137)
    assert not cache.wants(longer, 110, 137)
    assert not cache.wants(list(range(900, 1200)), 0, 300), "more than there may be"
    cache.make_room(100)
    assert cache.find(first, 100)[1] == 100
    assert cache.find(second, 100) == (None, 0)
    cache.check()


def test_a_longer_state_takes_the_place_of_its_beginning():
    cache = filled(COMMON, [*COMMON, *COMMON])
    assert cache.num_bytes == 200
    assert cache.stats.num_evicted == 0
