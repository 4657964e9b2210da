"""What is in the cache is not computed again, and changes no output."""

from __future__ import annotations

import random

import pytest

from interlock.core.sampling import SamplingParams
from interlock.runners.base import RunnerCapabilities
from interlock.runners.fake import Faults

SYSTEM = "You are a helpful agent with these tools: " + "abcdefgh " * 6
CUT_ONLY = RunnerCapabilities(partial_rollback=True)
COPY_ONLY = RunnerCapabilities(prefix_copy=True)
NEITHER = RunnerCapabilities()
SEEDED = SamplingParams(temperature=1.0, seed=7, presence_penalty=0.2)


def agent_loop(bench, num_turns: int, **options):
    """A conversation that grows by an answer and a question in each turn; ids and cached tokens per turn."""
    b = bench(context_tokens=4096, budget=64, **options)
    ids, turns = list(map(ord, SYSTEM)), []
    for turn in range(num_turns):
        ids += map(ord, f"user asks {turn} times >")
        name = b.submit(tuple(ids), max_tokens=12, sampling=SEEDED, stop_ids=())
        b.run()
        turns.append((b.ids(name), b.outputs[name][-1].num_cached_tokens))
        ids += b.ids(name)
    return b, ids, turns


@pytest.mark.parametrize("capabilities", [None, CUT_ONLY, COPY_ONLY, NEITHER])
def test_an_agent_loop_computes_each_token_once(bench, capabilities):
    b, ids, turns = agent_loop(bench, 20, capabilities=capabilities)
    assert b.runner.num_computed_tokens <= len(ids)
    *_, (_, num_cached) = turns
    assert num_cached >= len(ids) - 12 - len("user asks 19 times >") - 1
    assert b.core.stats().num_cached_tokens == sum(cached for _, cached in turns)
    _, _, without = agent_loop(bench, 20, prefix_cache=False)
    assert [(ids, 0) for ids, _ in turns] == without


def test_a_cache_that_cannot_be_cut_is_not(bench):
    for capabilities in (NEITHER, CUT_ONLY):
        b = bench(capabilities=capabilities, slots=1, prefix_cache=True)
        first = b.submit(SYSTEM + "one")
        b.run()
        second = b.submit(SYSTEM + "two")
        b.run()
        assert b.outputs[first][-1].num_cached_tokens == 0
        expected = len(SYSTEM) if capabilities is CUT_ONLY else 0
        assert b.outputs[second][-1].num_cached_tokens == expected


def test_the_last_token_of_a_prompt_is_always_computed(bench):
    b = bench()
    names = []
    for _ in range(3):
        names.append(b.submit(SYSTEM))
        b.run()
    assert [b.outputs[name][-1].num_cached_tokens for name in names] == [0, len(SYSTEM) - 1, len(SYSTEM) - 1]
    assert b.ids(names[0]) == b.ids(names[1]) == b.ids(names[2])


def test_conversations_that_take_turns_keep_their_own_history(bench):
    b = bench(slots=4, context_tokens=1024, budget=64)
    histories = [list(map(ord, f"{SYSTEM} conversation {i} >")) for i in range(3)]
    for turn in range(6):
        for ids in histories:
            ids += map(ord, f"turn {turn} >")
            name = b.submit(tuple(ids), stop_ids=())
            b.run()
            ids += b.ids(name)
    # Each token once, but for the system prompt, where a copy costs nothing here.
    assert b.runner.num_computed_tokens <= sum(map(len, histories))


def test_requests_that_arrive_together_compute_what_they_share_once(bench):
    b = bench(slots=8, context_tokens=512, budget=16, copy_cost_tokens=8)
    names = [b.submit(f"{SYSTEM}{i}", max_tokens=4) for i in range(8)]
    b.run()
    assert b.core.stats().num_prompt_tokens <= len(SYSTEM) + 8 * 40
    solo = bench(prefix_cache=False)
    for i, name in enumerate(names):
        expected = solo.submit(f"{SYSTEM}{i}", max_tokens=4)
        solo.run()
        assert b.ids(name) == solo.ids(expected)


def test_a_short_common_prefix_is_not_worth_a_copy(bench):
    b = bench(copy_cost_tokens=50, slots=2)
    b.submit("shared: something", max_tokens=30)
    b.step()
    b.step()
    late = b.submit("shared: else")
    b.run()
    assert b.outputs[late][-1].num_cached_tokens == 0


def test_what_is_likely_wanted_again_is_kept(bench):
    b = bench(slots=2, context_tokens=512, budget=64)
    long = SYSTEM * 3
    b.submit(long)
    b.run()
    for i in range(3):  # short ones take the other slot in turn
        b.submit(f"{i} short one")
        b.run()
    again = b.submit(long + "next")
    b.run()
    assert b.outputs[again][-1].num_cached_tokens == len(long)


def test_what_made_unusable_logits_is_not_reused(bench):
    faults = Faults(nan_after_ids={250})
    b = bench(faults=faults, slots=1)
    broken = b.submit((1, 2, 3, 250))
    b.run()
    assert b.finish(broken) == "error sampling_failed"
    faults.nan_after_ids.clear()
    fine = b.submit((1, 2, 3, 250))
    b.run()
    assert b.outputs[fine][-1].num_cached_tokens == 0


def test_a_failed_pass_leaves_nothing_to_reuse(bench):
    faults = Faults(poison_ids={250})
    b = bench(faults=faults, slots=2, budget=4)
    broken = b.submit((1, 2, 3, 4, 5, 250))
    b.run()
    assert b.finish(broken) == "error forward_failed"
    fine = b.submit((1, 2, 3, 4, 5, 6))
    b.run()
    assert b.finish(fine) == "length"
    assert b.outputs[fine][-1].num_cached_tokens == 0


def test_an_aborted_prompt_is_reused_as_far_as_it_was_computed(bench):
    b = bench(budget=16, slots=1)
    name = b.submit(SYSTEM)
    b.step()
    b.core.abort(name)
    again = b.submit(SYSTEM)
    b.run()
    assert b.outputs[again][-1].num_cached_tokens == 16


def test_neighbours_are_preferred(bench):
    b = bench(slots=6, copy_cost_tokens=1000)
    names = [b.submit(f"{i}>", max_tokens=100) for i in range(4)]
    b.step()
    for name in (names[0], names[2]):
        b.core.abort(name)
    held = {sequence.slot for sequence in b.core._scheduler._running}
    assert held == {1, 3}
    b.submit("9>", max_tokens=100)
    b.step()
    assert {sequence.slot for sequence in b.core._scheduler._running} == {1, 2, 3}


@pytest.mark.parametrize("seed", range(8))
def test_any_mix_of_prefixes_and_slots_gives_the_solo_outputs(bench, seed: int):
    rng = random.Random(seed)
    stems = [SYSTEM[: rng.randrange(1, len(SYSTEM))] for _ in range(3)]
    prompts = [rng.choice(stems) + "".join(rng.choices("ab", k=rng.randrange(6))) for _ in range(30)]
    solo = bench(prefix_cache=False, slots=1, context_tokens=300, max_waiting=99)
    b = bench(
        slots=rng.choice([1, 2, 5]),
        budget=rng.choice([4, 16, 64]),
        context_tokens=300,
        max_waiting=99,
        copy_cost_tokens=rng.choice([0, 10]),
        max_kv_tokens=rng.choice([0, 300, 500]),
        fairness_tokens=rng.choice([0, 3]),
        capabilities=rng.choice([None, CUT_ONLY, COPY_ONLY, NEITHER]),
    )
    fields = [{"sampling": SamplingParams(seed=i), "max_tokens": rng.randrange(1, 40)} for i in range(30)]
    expected = [solo.submit(prompt, **field) for prompt, field in zip(prompts, fields, strict=True)]
    solo.run()
    names = []
    for prompt, field in zip(prompts, fields, strict=True):
        names.append(b.submit(prompt, priority=rng.randrange(2), **field))
        for _ in range(rng.randrange(4)):
            b.step()
    b.run()
    assert [b.ids(name) for name in names] == [solo.ids(name) for name in expected]
