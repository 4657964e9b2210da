"""What matchers of one grammar share may be used up by one of them: the others get new ones and go on."""

from __future__ import annotations

import itertools

import pytest

from interlock.core.sampling import SamplingParams

LETTERS = ["".join(letters) for letters in itertools.product("bcd", repeat=6)]


def answers() -> list[list[str]]:
    return [[str(ord(letter)) for letter in text] for text in LETTERS] + [[str(ord("a")), "spent"]]


@pytest.mark.parametrize("slots", [4, 2])
@pytest.mark.parametrize("forced_tokens", [True, False])
def test_who_uses_it_up_ends_alone_and_others_say_what_they_say_alone(bench, slots: int, forced_tokens: bool):
    fields = {"answers": answers(), "max_tokens": 20}
    samplings = [SamplingParams(temperature=1.0, seed=seed, logit_bias=((97, -100.0),)) for seed in range(3)]

    def run(names_of):
        b = bench(slots=slots, forced_tokens=forced_tokens)
        names = names_of(b)
        b.run()
        return b, names

    b, (greedy, *others) = run(
        lambda b: [
            b.submit("?", sampling=SamplingParams(temperature=0.0, logit_bias=((97, 100.0),)), **fields),
            *(b.submit("?", sampling=sampling, **fields) for sampling in samplings),
        ]
    )
    assert b.finish(greedy) == "error matcher_failed"
    assert [b.finish(name) for name in others] == ["stop"] * 3
    for name, sampling in zip(others, samplings, strict=True):
        solo, (alone,) = run(lambda b, one=sampling: [b.submit("?", sampling=one, **fields)])
        assert b.ids(name) == solo.ids(alone)
    assert b.core.stats().num_grammar_compiles <= 4  # at first, and each time that it was used up


def test_a_new_request_gets_a_grammar_that_is_not_used_up(bench):
    b = bench()
    b.submit("?", sampling=SamplingParams(temperature=0.0, logit_bias=((97, 100.0),)), answers=answers())
    b.run()
    late = b.submit(
        "?", sampling=SamplingParams(temperature=0.0, logit_bias=((97, -100.0),)), answers=answers()
    )
    b.run()
    assert b.finish(late) == "stop"
