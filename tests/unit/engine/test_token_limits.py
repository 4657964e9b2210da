"""What a request forbids beside its constraint: minimum length, words, ids, the end."""

from __future__ import annotations

import pytest

from interlock.core.engine import ThinkingBudget
from interlock.core.sampling import SamplingParams, TokenLimits
from interlock.engine.token_limits import TokenLimiter

IM_END, ENDOFTEXT, CLOSE_THINK = 257, 258, 260
STOP_IDS = (IM_END, ENDOFTEXT)


def banned(*words: str) -> TokenLimits:
    return TokenLimits(banned=tuple(tuple(word.encode()) for word in words))


def allowed(text: str, **fields: object) -> TokenLimits:
    return TokenLimits(allowed=tuple(sorted(text.encode())), **fields)  # type: ignore[arg-type]


def said(b, limits: TokenLimits, prompt: str = ">", **fields: object) -> tuple[str, str | None]:
    name = b.submit(prompt, limits=limits, stop_ids=STOP_IDS, **fields)
    b.run()
    return b.text(name), b.finish(name)


def test_before_min_tokens_nothing_ends_a_free_answer(bench, says):
    b = bench(logits=says("ab<|im_end|>"))
    name = b.submit(">", limits=TokenLimits(min_tokens=5), stop_ids=STOP_IDS)
    b.run()
    assert (b.text(name)[:2], len(b.ids(name)), b.finish(name)) == ("ab", 5, "stop")


def test_min_tokens_counts_what_was_delivered_before_a_worker_died(bench, says):
    b = bench(logits=says("ab<|im_end|>"))
    name = b.submit(">", limits=TokenLimits(min_tokens=2), stop_ids=STOP_IDS, resume_ids=tuple(b"ab"))
    b.run()
    assert (b.text(name), b.finish(name)) == ("", "stop")


def test_a_grammar_that_has_come_to_its_end_ends_before_min_tokens(bench):
    b = bench(forced_tokens=False)
    assert said(b, TokenLimits(min_tokens=8), answers=["one"]) == ("one", "stop")
    assert said(b, TokenLimits(min_tokens=8), answers=[""]) == ("", "stop")


def test_a_grammar_that_may_end_and_go_on_goes_on_until_min_tokens(bench, says):
    answers = ["one", "one and two"]
    assert said(bench(logits=says("one<|im_end|>")), TokenLimits(), answers=answers)[0] == "one"
    text, finish = said(
        bench(logits=says("one<|im_end|>")), TokenLimits(min_tokens=4), answers=answers, max_tokens=20
    )
    assert (text, finish) == ("one and two", "stop")


def test_a_suppressed_end_is_taken_only_where_nothing_else_is_left(bench, says):
    limits = TokenLimits(suppressed=STOP_IDS)
    b = bench(logits=says("ab<|im_end|>"))
    text, finish = said(b, limits)
    assert (len(text), finish) == (8, "length")
    assert said(b, limits, answers=["a"]) == ("a", "stop")
    assert said(b, limits, answers=["ab", "abc"]) == ("abc", "stop")


def test_a_stop_id_of_the_request_ends_although_the_models_own_are_suppressed(bench, says):
    b = bench(logits=says("ab.c"))
    name = b.submit(">", limits=TokenLimits(suppressed=STOP_IDS), stop_ids=(*STOP_IDS, ord(".")))
    b.run()
    assert (b.text(name), b.finish(name)) == ("ab", "stop")


@pytest.mark.parametrize("forced_tokens", [True, False])
def test_a_banned_word_is_left_at_its_last_token(bench, says, forced_tokens: bool):
    b = bench(logits=says("abcabc"), forced_tokens=forced_tokens)
    assert said(b, banned("c", "zz"))[0].startswith("ab")
    assert "c" not in said(b, banned("c"))[0]
    assert "abc" not in said(b, banned("abc"))[0]
    assert said(b, banned("abc"))[0].startswith("ab")
    assert said(b, banned("le"), answers=["left", "right"]) == ("right", "stop")


def test_the_prompt_is_no_part_of_a_banned_word(bench, says):
    assert said(bench(logits=says("abc")), banned(">a"), prompt="x>")[0].startswith("abc")


@pytest.mark.parametrize("forced_tokens", [True, False])
def test_a_constraint_that_leaves_only_banned_words_is_an_error_of_that_request(bench, forced_tokens: bool):
    b = bench(forced_tokens=forced_tokens)
    other = b.submit(answers=["one"])
    text, finish = said(b, banned("ne"), answers=["one"])
    assert ("one".startswith(text), finish) == (True, "error no_token_allowed")
    assert (b.text(other), b.finish(other)) == ("one", "stop")


def test_only_allowed_ids_are_chosen(bench, says):
    text, finish = said(bench(logits=says("abc<|im_end|>")), allowed("xyz"))
    assert (set(text) <= set("xyz"), len(text), finish) == (True, 8, "length")


def test_allowed_ids_hold_together_with_a_grammar_which_may_end_all_the_same(bench):
    answers = ["on", "off", "one"]
    assert said(bench(), allowed("on"), answers=answers) == ("on", "stop")
    assert said(bench(), allowed("x"), answers=answers)[1] == "error no_token_allowed"


def test_thinking_is_closed_although_its_marker_is_not_allowed(bench, says):
    budget = ThinkingBudget(max_tokens=2, close_ids=(CLOSE_THINK,))
    text, _ = said(bench(logits=says("abcdef")), allowed("abcdef"), thinking=budget)
    assert text.startswith("ab</think>")


def test_what_is_forbidden_has_no_part_in_log_probabilities(bench, says):
    b = bench(logits=says("abc"))
    sampling = SamplingParams(temperature=0.0, logprobs=3)
    name = b.submit(">", limits=allowed("b"), sampling=sampling, stop_ids=STOP_IDS)
    b.run()
    first = b.outputs[name][0].logprobs[0]
    assert (first.token_id, first.logprob, first.top) == (ord("b"), 0.0, ((ord("b"), 0.0),))


def test_limits_change_nothing_under_preemption(bench, says):
    limits = TokenLimits(banned=(tuple(b"ca"),), min_tokens=7)
    expected = said(bench(logits=says("abc<|im_end|>")), limits, max_tokens=12)
    b = bench(logits=says("abc<|im_end|>"))
    name = b.submit(">", limits=limits, stop_ids=STOP_IDS, max_tokens=12)
    while not b.core.is_empty:
        b.step()
        b.core.preempt(name)
    assert (b.text(name), b.finish(name)) == expected


def test_a_request_without_limits_has_no_limiter(bench):
    b = bench()
    b.submit()
    (sequence,) = b.core._sequences.values()
    assert TokenLimiter.of(sequence.request) is None
    assert sequence.limiter is None
