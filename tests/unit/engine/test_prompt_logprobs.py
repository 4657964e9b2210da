"""Log probabilities of a prompt's tokens: what the model says of them, however the prompt is computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from interlock.core.engine import TokenLogprob
from interlock.core.sampling import SamplingParams
from interlock.runners.fake import Faults, Prefix, UniformLogits
from interlock.runners.fake.logits import extend_digest
from interlock.tokenization.byte_tokenizer import byte_tokenizer

VOCAB_SIZE = byte_tokenizer().vocabulary.size
PROMPT = "a prompt that takes several steps where the budget is small, and is longer than 64 tokens, too"
SCORED = SamplingParams(temperature=0.0, prompt_logprobs=2, logit_bias=((65, 5.0),))


def scores_by_hand(prompt: str) -> list[tuple[int, float | None]]:
    """Each id with the logarithm of its probability under the bare logits."""
    ids, source, digest = list(prompt.encode()), UniformLogits(VOCAB_SIZE), 0
    found: list[tuple[int, float | None]] = [(ids[0], None)]
    for index, token_id in enumerate(ids[:-1]):
        digest = extend_digest(digest, token_id)
        row = source.row(Prefix(ids, index + 1, digest)).astype(np.float64)
        following = ids[index + 1]
        found.append((following, float(row[following]) - math.log(np.exp(row).sum())))
    return found


def scores_of(b: Any, name: str) -> tuple[TokenLogprob, ...]:
    """What its outputs tell, which the first one with tokens does."""
    first, *others = b.outputs[name]
    assert not any(output.prompt_logprobs for output in others)
    assert first.token_ids
    scores: tuple[TokenLogprob, ...] = first.prompt_logprobs
    return scores


def check(b: Any, name: str, prompt: str = PROMPT) -> None:
    scores = scores_of(b, name)
    for score, (token_id, logprob) in zip(scores, scores_by_hand(prompt), strict=True):
        assert score.token_id == token_id
        assert score.logprob == (None if logprob is None else pytest.approx(logprob, abs=1e-5))
    assert [len(score.top) for score in scores] == [0] + [2] * (len(prompt) - 1)
    best = [score for score in scores if score.rank == 1]
    assert all(score.top[0] == (score.token_id, score.logprob) for score in best)


@pytest.mark.parametrize("budget", [4, 16, 512])
def test_every_chunking_gives_the_same_scores_and_the_same_text(bench, budget: int):
    b = bench(budget=budget)
    names = [b.submit(PROMPT, sampling=SCORED), b.submit("other"), b.submit("x", sampling=SCORED)]
    b.run()
    check(b, names[0])
    check(b, names[2], "x")
    assert not b.outputs[names[1]][0].prompt_logprobs
    plain = bench()
    name = plain.submit(PROMPT, sampling=SamplingParams(temperature=0.0, logit_bias=SCORED.logit_bias))
    plain.run()
    assert plain.ids(name) == b.ids(names[0])


def test_what_is_in_the_cache_is_computed_again_and_serves_others_afterwards(bench):
    b = bench()
    for sampling in (SamplingParams(temperature=0.0), SCORED, SamplingParams(temperature=0.0)):
        name = b.submit(PROMPT, sampling=sampling)
        b.run()
        if sampling is SCORED:
            check(b, name)
            assert b.outputs[name][-1].num_cached_tokens == 0
    assert b.outputs[name][-1].num_cached_tokens == len(PROMPT) - 1


@pytest.mark.parametrize("every", [1, 2, 5])
def test_preempted_while_it_is_scored(bench, every: int):
    b = bench(budget=8)
    name = b.submit(PROMPT, sampling=SCORED)
    number = 0
    while not b.core.is_empty:
        b.step()
        number += 1
        if number % every == 0 and number < 30:
            b.core.preempt(name)
    check(b, name)


def test_passes_that_fail_are_scored_again(bench):
    b = bench(budget=512, faults=Faults(fail_launches={1}))
    names = [b.submit(PROMPT, sampling=SCORED), b.submit("neighbour")]
    b.run()
    check(b, names[0])


def test_unusable_logits_of_a_prompt_end_its_request_only(bench):
    b = bench(faults=Faults(nan_after_ids={200}))
    broken = b.submit([65, 200, 66], sampling=SCORED)
    fine, free = b.submit(PROMPT, sampling=SCORED), b.submit([65, 200, 66])
    b.run()
    assert [b.finish(name) for name in (broken, fine, free)] == ["error sampling_failed", "length", "length"]
    check(b, fine)


def test_under_a_constraint_scores_come_with_the_first_token(bench):
    b = bench()
    name = b.submit(PROMPT, sampling=SCORED, answers=["abc"])
    b.run()
    assert b.text(name) == "abc"
    check(b, name)


def test_a_request_that_is_resumed_has_told_them(bench):
    b = bench()
    name = b.submit(PROMPT, sampling=SCORED, resume_ids=(97, 98))
    b.run()
    assert scores_of(b, name) == ()
