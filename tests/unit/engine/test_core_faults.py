"""What goes wrong in one request stays in it."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from interlock.constraints.providers.base import MatcherError
from interlock.constraints.providers.fake import FakeGrammar
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.engine import execution
from interlock.engine.token_limits import TokenLimiter
from interlock.runners.fake import Faults
from interlock.sampling import select

POISON = 200
PROMPTS = ["alpha", "beta is longer than one chunk of the budget", "g", "delta"]


def solo_ids(bench, prompt: str, **fields) -> list[int]:
    b = bench()
    name = b.submit(prompt, **fields)
    b.run()
    return b.ids(name)


def test_a_matcher_that_fails_ends_its_request_only(bench):
    b = bench()
    broken = b.submit(answers=[["97", "error"]])
    fine, free = b.submit(answers=["ab"]), b.submit("free")
    b.run()
    assert [b.finish(name) for name in (broken, fine, free)] == ["error matcher_failed", "stop", "length"]
    assert b.ids(free) == solo_ids(bench, "free")


def state_of(b, name: str):
    """The constraint of a request that has begun."""
    while (state := b.core._sequences[name].constraint) is None:
        b.wait_for_grammar()
        b.step()
    return state


CHOICES = ["".join(letters) for letters in itertools.product("xy", repeat=4)]  # nothing in them is forced
FAULT = KeyError("a fault of our own")


class Broken:
    """A matcher one of whose methods has a fault."""

    def __init__(self, matcher, method: str, fault: Exception) -> None:
        self._matcher = matcher
        self._method = method
        self._fault = fault

    def __getattr__(self, name: str):
        if name == self._method:
            raise self._fault
        return getattr(self._matcher, name)


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("fill", FAULT),
        ("accept", FAULT),
        ("forced_tokens", FAULT),
        ("is_accepting", FAULT),
        ("is_terminated", FAULT),
        ("accept", MatcherError("the token is not allowed")),
        ("fill", ValueError("a mask of another size")),
    ],
    ids=str,
)
def test_a_fault_in_the_code_of_a_matcher_ends_its_request_only(bench, method: str, fault: Exception):
    b = bench()
    names = [b.submit(answers=CHOICES) for _ in range(3)]
    free = b.submit("free")
    state = state_of(b, names[1])
    state._matcher = Broken(state._matcher, method, fault)
    b.run()
    ends = [b.finish(name) for name in (*names, free)]
    assert ends == ["stop", "error matcher_failed", "stop", "length"]
    assert b.ids(free) == solo_ids(bench, "free")


def test_masks_that_cannot_be_filled_together_are_filled_one_by_one(bench, monkeypatch):
    class Filler:
        def fill(self, jobs, rows) -> None:
            raise KeyError("a fault of our own")

    b = bench()
    monkeypatch.setattr(b.core._execution._masks, "_filler", lambda *_: Filler())
    names = [b.submit(answers=["abc", "xyz"]) for _ in range(2)]
    b.wait_for_grammar()
    b.run()
    assert [b.finish(name) for name in names] == ["stop", "stop"]


def test_a_fault_in_the_sampler_ends_the_request_of_its_row_only(bench, monkeypatch):
    b = bench()
    other, fine = b.submit("other", max_tokens=7), b.submit("fine")

    def faulty(values, row, _select=select.select):
        if row.position == 3 and row.params.seed == 99:
            raise KeyError("a fault of our own")
        return _select(values, row)

    monkeypatch.setattr(select, "select", faulty)
    seeded = b.submit("seeded", sampling=SamplingParams(temperature=1.0, seed=99))
    b.run()
    ends = [b.finish(name) for name in (other, fine, seeded)]
    assert ends == ["length", "length", "error sampling_failed"]
    assert len(b.ids(seeded)) == 3
    assert b.ids(fine) == solo_ids(bench, "fine")


def test_a_matcher_that_cannot_be_made_ends_its_request_only(bench, monkeypatch):
    matcher = FakeGrammar.matcher

    def made(grammar: FakeGrammar):
        if len(grammar._answers) == 3:
            raise FAULT
        return matcher(grammar)

    monkeypatch.setattr(FakeGrammar, "matcher", made)
    b = bench()
    broken, fine, free = b.submit(answers=["a", "b", "c"]), b.submit(answers=["ab"]), b.submit("free")
    b.run()
    assert [b.finish(name) for name in (broken, fine, free)] == ["error matcher_failed", "stop", "length"]
    assert b.ids(free) == solo_ids(bench, "free")


def test_a_constrained_request_without_a_matcher_says_nothing(bench):
    b = bench()
    lost, fine = b.submit(answers=CHOICES), b.submit(answers=CHOICES)
    state_of(b, lost)
    said = b.ids(lost)
    b.core._sequences[lost].constraint = None
    b.run()
    assert [b.finish(name) for name in (lost, fine)] == ["error internal_error", "stop"]
    assert b.ids(lost) == said


def test_a_matcher_that_cannot_be_closed_costs_nobody_anything(bench):
    b = bench()
    names = [b.submit(answers=CHOICES) for _ in range(2)]
    state = state_of(b, names[0])
    state._matcher = Broken(state._matcher, "close", FAULT)
    b.run()
    assert [b.finish(name) for name in names] == ["stop", "stop"]


def test_a_fault_in_the_limits_of_a_request_ends_it_only(bench, monkeypatch):
    applied = TokenLimiter.applied

    def faulty(limiter: TokenLimiter, mask, tail, position: int, vocab_size: int):
        if position == 3:
            raise FAULT
        return applied(limiter, mask, tail, position, vocab_size)

    monkeypatch.setattr(TokenLimiter, "applied", faulty)
    b = bench()
    fine, broken, seeded = b.submit("fine"), b.submit("x", limits=TokenLimits(min_tokens=5)), b.submit("other")
    b.run()
    assert [b.finish(name) for name in (fine, broken, seeded)] == ["length", "error internal_error", "length"]
    assert len(b.ids(broken)) == 3
    assert [b.ids(fine), b.ids(seeded)] == [solo_ids(bench, "fine"), solo_ids(bench, "other")]


@pytest.mark.parametrize(
    ("mask", "code"),
    [(lambda mask: mask[:-1], "sampling_failed"), (lambda mask: mask & 0, "no_token_allowed")],
    ids=["of another size", "without an allowed token"],
)
def test_a_mask_that_is_none_ends_its_request_only(bench, monkeypatch, mask, code: str):
    rows_of = execution.sampling_rows

    def masked(sequence, *rest):
        rows = rows_of(sequence, *rest)
        return [replace(row, mask=mask(row.mask)) for row in rows] if sequence.request.priority else rows

    monkeypatch.setattr(execution, "sampling_rows", masked)
    b = bench()
    answers = ["abc", "xyz"]
    broken, fine, free = b.submit(answers=answers, priority=1), b.submit(answers=answers), b.submit("free")
    b.run()
    assert [b.finish(name) for name in (broken, fine, free)] == [f"error {code}", "stop", "length"]
    assert b.ids(free) == solo_ids(bench, "free")


def test_an_id_of_the_padding_ends_its_request_only(bench, monkeypatch):
    chosen = select.select

    def padding(values, row):
        choice = chosen(values, row)
        return replace(choice, token_id=values.size + 1) if row.params.seed == 99 else choice

    monkeypatch.setattr(select, "select", padding)
    b = bench()
    broken = b.submit("x", sampling=SamplingParams(temperature=1.0, seed=99))
    fine = b.submit("fine")
    b.run()
    assert [b.finish(name) for name in (broken, fine)] == ["error sampling_failed", "length"]
    assert b.ids(fine) == solo_ids(bench, "fine")


def test_a_grammar_whose_matcher_failed_is_compiled_anew_for_the_next_request(bench):
    b = bench()
    for _ in range(2):
        broken = b.submit(answers=[["97", "error"]])
        b.run()
        assert b.finish(broken) == "error matcher_failed"
    assert b.core.stats().num_grammar_compiles == 2


def test_logits_that_are_not_numbers_end_their_request_only(bench):
    b = bench(faults=Faults(nan_after_ids={POISON}))
    broken, fine = b.submit([1, POISON]), b.submit("fine")
    b.run()
    assert [b.finish(name) for name in (broken, fine)] == ["error sampling_failed", "length"]
    assert b.ids(fine) == solo_ids(bench, "fine")


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("budget", [4, 16, 512])
def test_a_pass_that_fails_ends_the_culprit_only(bench, place: int, budget: int):
    b = bench(faults=Faults(poison_ids={POISON}), slots=5, budget=budget)
    sampling = SamplingParams(temperature=1.0, seed=3, frequency_penalty=0.5)
    # Ids that are not poison, for those that live on: a grammar over letters, and a mask-free greedy prefix.
    fields = {"sampling": sampling, "answers": ["abcd", "axyz", "qrst"]}
    prompts: list = list(PROMPTS)
    prompts.insert(place, [65, 66, POISON, 67])
    names = [b.submit(prompt, **fields) for prompt in prompts]
    b.wait_for_grammar()
    b.run()
    culprit = names.pop(place)
    assert b.finish(culprit) == "error forward_failed"
    assert [b.finish(name) for name in names] == ["stop"] * 4
    assert [b.ids(name) for name in names] == [solo_ids(bench, prompt, **fields) for prompt in PROMPTS]


def test_a_culprit_is_found_in_the_middle_of_its_output(bench, says):
    b = bench(logits=says("abcdefgh"), faults=Faults(poison_ids={ord("d")}))
    culprit = b.submit(">")
    others = [b.submit(">", max_tokens=3) for _ in range(2)]
    b.run()
    assert b.finish(culprit) == "error forward_failed"
    assert b.text(culprit) == "abcd"
    assert [(b.text(name), b.finish(name)) for name in others] == [("abc", "length")] * 2


def test_a_fault_that_passes_costs_nobody_anything(bench):
    b = bench(faults=Faults(fail_launches={0, 3}))
    names = [b.submit(prompt) for prompt in PROMPTS]
    b.run()
    assert [b.ids(name) for name in names] == [solo_ids(bench, prompt) for prompt in PROMPTS]


def test_requests_that_arrive_while_a_culprit_is_searched_run_afterwards(bench):
    b = bench(faults=Faults(poison_ids={POISON}), slots=4)
    early = [b.submit([POISON]), b.submit("early")]
    b.step()
    late = b.submit("late")
    b.run()
    assert [b.finish(name) for name in (*early, late)] == ["error forward_failed", "length", "length"]


def test_a_suspect_can_be_aborted(bench):
    b = bench(faults=Faults(poison_ids={POISON}))
    names = [b.submit([POISON]), b.submit("other")]
    b.step()
    for name in names:
        b.core.abort(name)
    late = b.submit("late")
    b.run()
    assert [b.finish(name) for name in (*names, late)] == ["abort", "abort", "length"]


def test_after_an_unexpected_exception_everything_ends_and_work_goes_on(bench, monkeypatch):
    b = bench()
    b.provider.gate.clear()
    names = [b.submit("a"), b.submit("b", answers=["xy"])]
    b.step()
    with monkeypatch.context() as patch:
        patch.setattr(b.core._execution, "_rows", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            b.core.step()
    b.core.reset("division by zero")
    b.core.check()
    b.step()
    assert [b.finish(name) for name in names] == ["error internal_error"] * 2
    b.provider.gate.set()
    b.wait_for_grammar()
    late = b.submit("late", answers=["xy"])
    b.run()
    assert b.text(late) == "xy"


def test_all_can_be_ended_with_one_reason(bench):
    b = bench(slots=1)
    names = [b.submit("a"), b.submit("b"), b.submit("c", answers=["x"])]
    b.step()
    b.core.fail_all("shutting_down", "the server is stopping")
    b.run()
    assert [b.finish(name) for name in names] == ["error shutting_down"] * 3
