"""Requests through the core, one behaviour each."""

from __future__ import annotations

import itertools

import pytest

from interlock.constraints.providers.fake import FakeGrammar, FakeMatcher
from interlock.core.engine import ThinkingBudget
from interlock.core.sampling import SamplingParams
from interlock.errors import InterlockError
from interlock.runners.fake.runner import FakeForward

IM_END, ENDOFTEXT, CLOSE_THINK = 257, 258, 260


def test_a_free_request_says_what_the_model_says(bench, says):
    b = bench(logits=says("abc<|im_end|>"))
    name = b.submit(">")
    b.run()
    assert (b.text(name), b.finish(name)) == ("abc", "stop")


def test_every_stop_id_of_the_request_ends_it_and_none_is_part_of_the_output(bench, says):
    b = bench(logits=says("ab.c<|im_end|>"))
    names = [b.submit(">", stop_ids=ids) for ids in [(ord("."),), (IM_END, ord("c")), ()]]
    b.run()
    assert [b.text(name) for name in names] == ["ab", "ab.", "ab.c<|im_end|>ab."]
    assert [b.finish(name) for name in names] == ["stop", "stop", "length"]


def test_max_tokens_ends_with_length(bench, says):
    b = bench(logits=says("abcdef<|im_end|>"))
    name = b.submit(">", max_tokens=3)
    b.run()
    assert (b.text(name), b.finish(name)) == ("abc", "length")


def test_a_full_context_ends_with_length(bench):
    b = bench(context_tokens=10)
    name = b.submit("12345678", max_tokens=100)
    b.run()
    assert (len(b.ids(name)), b.finish(name)) == (2, "length")


@pytest.mark.parametrize(
    ("prompt", "fields", "code"),
    [
        ("", {}, "invalid_value"),
        ("a", {"max_tokens": 0}, "invalid_value"),
        ([300], {}, "invalid_value"),
        ([-1], {}, "invalid_value"),
        ("x" * 256, {}, "context_length_exceeded"),
    ],
)
def test_a_request_that_cannot_run_is_refused(bench, prompt, fields, code: str):
    b = bench()
    with pytest.raises(InterlockError) as refused:
        b.submit(prompt, **fields)
    assert refused.value.code == code
    assert b.core.is_empty


def test_an_id_in_use_is_refused(bench):
    b = bench()
    b.submit(request_id="same")
    with pytest.raises(InterlockError, match="'same' is in use"):
        b.submit(request_id="same")


def test_a_constrained_request_says_only_what_the_grammar_allows(bench, says):
    b = bench(logits=says("xyz"))
    name = b.submit(">", answers=["left", "right"])
    b.run()
    assert b.text(name) in ("left", "right")
    assert (b.finish(name), b.outputs[name][-1].is_accepting) == ("stop", True)


def test_the_end_of_a_grammar_ends_the_request_without_another_step(bench):
    b = bench()
    name = b.submit("hello", answers=["one"])
    b.wait_for_grammar()
    for _ in range(3):
        b.step()
    assert (b.text(name), b.finish(name)) == ("one", "stop")


def test_an_empty_answer_ends_with_stop(bench):
    b = bench()
    name = b.submit(answers=[""])
    b.run()
    assert (b.ids(name), b.finish(name), b.outputs[name][-1].is_accepting) == ([], "stop", True)


def test_the_model_may_stop_where_the_grammar_may_end(bench, says):
    b = bench(logits=says("one<|endoftext|>"))
    name = b.submit(">", answers=["one", "one more"], stop_ids=())
    b.run()
    assert (b.text(name), b.finish(name), b.outputs[name][-1].is_accepting) == ("one", "stop", True)


@pytest.mark.parametrize(
    ("max_tokens", "finish", "accepting"),
    [(1, "length", False), (2, "length", False), (3, "length", True), (5, "length", False), (8, "stop", True)],
)
def test_max_tokens_inside_a_grammar_says_whether_it_accepts_and_its_end_wins(
    bench, says, max_tokens: int, finish: str, accepting: bool
):
    b = bench(logits=says("one more"))
    name = b.submit(">", answers=["one", "one more"], max_tokens=max_tokens)
    b.run()
    assert (b.finish(name), b.outputs[name][-1].is_accepting) == (finish, accepting)
    assert b.text(name) == "one more"[:max_tokens]


def test_an_ordinary_token_as_stop_id_ends_only_where_the_grammar_may_end(bench, says):
    b = bench(logits=says("a.b.c"))
    early = b.submit(">", answers=["a.b.c"], stop_ids=(ord("."),))
    late = b.submit(">", answers=["a.b", "a.b.c"], stop_ids=(ord("."),))
    b.run()
    assert (b.text(early), b.finish(early)) == ("a.b.c", "stop")
    assert (b.text(late), b.finish(late)) == ("a.b", "stop")


def test_acceptance_is_reported_on_every_output_when_asked(bench, says):
    b = bench(logits=says("abc"))
    asked = b.submit(">", answers=["ab", "abc"], report_accepting=True)
    unasked = b.submit(">", answers=["ab", "abc"])
    free = b.submit(">", report_accepting=True, max_tokens=2)
    b.run()
    assert [output.is_accepting for output in b.outputs[asked]] == [False, True, True]
    assert [output.is_accepting for output in b.outputs[unasked]] == [
        None,
        True,
    ]  # what is forced comes at once
    assert [output.is_accepting for output in b.outputs[free]] == [None, None]


def test_thinking_is_closed_at_its_budget_also_without_a_grammar(bench, says):
    b = bench(logits=says("hm"))
    name = b.submit(">", thinking=ThinkingBudget(max_tokens=3, close_ids=(CLOSE_THINK,)), max_tokens=6)
    b.run()
    assert b.text(name) == "hmh</think>hm"
    assert b.outputs[name][-1].is_accepting is None


def test_a_request_waiting_for_its_grammar_blocks_nobody(bench, says):
    b = bench(logits=says("abcdefgh"), slots=1)
    b.provider.gate.clear()
    slow = b.submit(">", answers=["abc"])
    assert not b.core.has_work
    free = b.submit(">", max_tokens=4)
    for _ in range(4):
        b.step()
    assert (b.finish(free), b.finish(slow)) == ("length", None)
    b.provider.gate.set()
    b.run()
    assert (b.text(slow), b.finish(slow)) == ("abc", "stop")


def test_a_request_aborted_while_it_waits_for_its_grammar_never_runs(bench):
    b = bench()
    b.provider.gate.clear()
    name = b.submit(answers=["abc"])
    b.core.abort(name)
    b.step()
    assert (b.finish(name), b.core.is_empty) == ("abort", True)
    b.provider.gate.set()
    b.wait_for_grammar()
    b.step()
    assert b.runner.num_launches == 0
    assert not b.core.has_work


def test_a_grammar_that_does_not_compile_ends_its_request_with_the_reason(bench):
    b = bench()
    name, other = b.submit(answers=[]), b.submit()
    b.run()
    assert (b.finish(name), b.finish(other)) == ("error invalid_grammar", "length")


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_an_abort_frees_everything_at_once(bench, steps: int):
    b = bench(slots=1, budget=4)
    name = (
        b.submit("a longer prompt", answers=["abcdefgh", "xyz"])
        if steps % 2
        else b.submit("hey", max_tokens=99)
    )
    if steps % 2:
        b.wait_for_grammar()
    for _ in range(steps):
        b.step()
    b.core.abort(name)
    b.core.check()
    assert b.core.stats().num_running == b.core.stats().num_waiting == 0
    b.step()
    assert b.finish(name) == "abort"
    following = b.submit("hey")
    b.run()
    assert b.finish(following) == "length"


def test_aborting_an_unknown_id_does_nothing(bench):
    b = bench()
    b.core.abort("nobody")
    assert b.core.is_empty


def test_a_deadline_ends_running_waiting_and_uncompiled_requests(bench):
    b = bench(slots=1)
    b.provider.gate.clear()
    names = [
        b.submit("a", deadline_s=5.0, max_tokens=99),
        b.submit("b", deadline_s=5.0),
        b.submit("c", answers=["x"], deadline_s=5.0),
    ]
    patient = b.submit("d", deadline_s=50.0)
    b.step()
    b.now = 4.9
    b.step()
    assert [b.finish(name) for name in names] == [None] * 3
    assert b.core.next_deadline == 5.0
    b.now = 5.0
    b.step()
    assert [b.finish(name) for name in names] == ["error request_timeout"] * 3
    assert b.core.next_deadline == 50.0
    b.run()
    assert b.finish(patient) == "length"
    b.provider.gate.set()


def test_penalties_count_what_was_generated(bench):
    b = bench()
    sampling = SamplingParams(temperature=0.0, presence_penalty=2.0)
    name = b.submit("hello", sampling=sampling, max_tokens=100, stop_ids=())
    b.run()
    assert len(set(b.ids(name))) == 100


def test_repetition_penalty_counts_the_prompt(bench):
    b = bench()
    prompt = list(range(200))
    sampling = SamplingParams(temperature=0.0, repetition_penalty=1e6)
    name = b.submit(prompt, sampling=sampling, max_tokens=50, stop_ids=())
    b.run()
    assert len(set(b.ids(name)) - set(prompt)) == 50


def test_logprobs_go_with_their_tokens(bench, says):
    b = bench(logits=says("ab<|im_end|>"))
    name = b.submit(">", sampling=SamplingParams(temperature=0.0, logprobs=2))
    b.run()
    for output in b.outputs[name]:
        assert tuple(logprob.token_id for logprob in output.logprobs) == output.token_ids


def test_stats_count_tokens_and_steps(bench):
    b = bench(budget=8)
    b.submit("x" * 20, max_tokens=5)
    assert b.core.stats().num_waiting == 1
    b.run()
    stats = b.core.stats()
    assert (stats.num_prompt_tokens, stats.num_generated_tokens, stats.num_steps) == (20, 5, 7)
    assert stats.step_s >= stats.forward_s >= stats.mask_s > 0


@pytest.mark.parametrize(("logprobs_of", "is_certain"), [("masked", True), ("model", False)])
def test_forced_tokens_have_log_probabilities_of_their_row(bench, logprobs_of: str, is_certain: bool):
    b = bench()
    sampling = SamplingParams(temperature=0.0, logprobs=2, logprobs_of=logprobs_of)
    name = b.submit(answers=["one"], sampling=sampling)
    b.run()
    found = [one for output in b.outputs[name] for one in output.logprobs]
    assert bytes(one.token_id for one in found) == b"one"
    assert [one.logprob == 0 for one in found] == [is_certain] * 3
    assert [len(one.top) for one in found] == [1 if is_certain else 2] * 3


def test_masks_are_filled_between_the_launch_of_a_pass_and_the_selection(bench, monkeypatch):
    b = bench()
    b.submit(answers=["xyz", "zyx"])
    b.wait_for_grammar()
    order: list[str] = []

    def noted(owner, name: str) -> None:
        method = getattr(owner, name)

        def called(*args):
            order.append(name)
            return method(*args)

        monkeypatch.setattr(owner, name, called)

    noted(b.runner, "launch")
    noted(FakeMatcher, "fill")
    noted(FakeForward, "select")
    b.run()
    assert order == ["launch", "fill", "select"]


class Releases:
    """Counts how often each matcher of a request is closed; copies that look ahead do not count."""

    def __init__(self, monkeypatch) -> None:
        self.made: list[FakeMatcher] = []
        self.closed: list[FakeMatcher] = []
        make, close = FakeGrammar.matcher, FakeMatcher.close

        def made(grammar: FakeGrammar) -> FakeMatcher:
            self.made.append(make(grammar))
            return self.made[-1]

        def closed(matcher: FakeMatcher) -> None:
            self.closed.append(matcher)
            close(matcher)

        monkeypatch.setattr(FakeGrammar, "matcher", made)
        monkeypatch.setattr(FakeMatcher, "close", closed)


@pytest.mark.parametrize("end", ["stop", "length", "abort", "error matcher_failed", "error request_timeout"])
def test_a_matcher_is_released_exactly_once_however_its_request_ends(bench, monkeypatch, end: str):
    releases = Releases(monkeypatch)
    b = bench()
    answers: list = [list(letters) for letters in itertools.product(b"xy", repeat=6)]
    if end == "error matcher_failed":
        answers = [[*letters[:3], "error", 0] for letters in answers]
    name = b.submit(answers=answers, max_tokens=3 if end == "length" else 20, deadline_s=5.0)
    b.wait_for_grammar()
    b.step()
    if end == "abort":
        b.core.abort(name)
    if end == "error request_timeout":
        b.now = 6.0
    b.run()
    assert b.finish(name) == end
    assert len(releases.made) == 1
    assert [one for one in releases.closed if one in releases.made] == releases.made
    again = b.submit(answers=["abcdefgh"])
    b.run()
    assert b.finish(again) == "stop"
