"""Guessers, what a guess may cost, and the decision whether it is verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.state import ConstraintState
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.engine.draft_rates import Rates
from interlock.engine.drafting.ngram import NgramProposer
from interlock.engine.drafting.registry import create_speculator
from interlock.engine.drafting.skeleton import SkeletonProposer
from interlock.engine.drafting.speculator import Speculator
from interlock.engine.scheduler import Chunk
from interlock.engine.sequence import Sequence
from interlock.engine.step_cost import StepCost
from interlock.errors import InterlockError
from interlock.runners.base import RunnerCapabilities
from interlock.runners.fake import FakeRunner
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
PROVIDER = LLGuidanceProvider(TOKENIZER)
KEYS = 'start: "{" pair (", " pair)* "}"\npair: KEY ": " /[0-9]+/\nKEY: "\\"city\\"" | "\\"zip\\"" | "\\"name\\""\n'


def sequence(prompt: str, said: str = "", lark: str | None = None, literals: tuple[str, ...] = ()) -> Sequence:
    constraint = None
    if lark is not None:
        constraint = LoweredConstraint(provider="llguidance", grammar=lark, key=lark, literals=literals)
    made = Sequence(
        request=EngineRequest(
            request_id=prompt + said,
            prompt_ids=tuple(TOKENIZER.encode(prompt)),
            sampling=SamplingParams(temperature=0.0),
            max_tokens=100,
            constraint=constraint,
        ),
        arrival=1,
        max_output_tokens=100,
    )
    if lark is not None:
        made.constraint = ConstraintState(PROVIDER.compile(lark).matcher())
    for token_id in TOKENIZER.encode(said):
        made.append(token_id)
        if made.constraint is not None:
            made.constraint.accept(token_id)
    return made


@pytest.mark.parametrize(
    ("text", "limit", "guess"),
    [
        ("one two three one two", 6, " three"),
        ("one two three one two", 2, " t"),
        ("ab1 xab2 ab", 3, "2 a"),  # the latest place
        ("xab1 yab2 xab", 1, "1"),  # the longest match
        ("abcdefg", 5, ""),
        ("a", 5, ""),
    ],
)
def test_ngrams_guess_what_followed_the_last_time(text: str, limit: int, guess: str):
    (found,) = NgramProposer(shortest=2, longest=4).propose([sequence(text)], limit)
    assert TOKENIZER.decode(found) == guess


def test_ngrams_follow_a_sequence_that_grows_and_pass_over_what_is_illegal():
    proposer = NgramProposer(shortest=1, longest=4)
    growing = sequence("7a 7b 75 ", "7", "start: /[0-9]{1,6}/")
    assert proposer.propose([growing], 1) == [[ord("5")]]
    for token_id in TOKENIZER.encode("51"):
        growing.append(token_id)
    assert proposer.propose([growing], 9) == [[]]  # nothing stood behind a 1


@pytest.mark.parametrize(
    ("said", "guess"),
    [
        ("", ""),  # "{" is forced anyway
        ("{", '"city'),
        ('{"', "city"),
        ('{"ci', "ty"),
        ('{"n', "ame"),
        ('{"city": 1', ', "city'),
        ('{"city": 1, "', "city"),
    ],
)
def test_a_skeleton_guesses_declared_literals_where_the_grammar_wants_one(said: str, guess: str):
    proposer = SkeletonProposer(TOKENIZER)
    (found,) = proposer.propose([sequence(">", said, KEYS, ("city", "zip", "name"))], 20)
    assert TOKENIZER.decode(found) == guess


def test_a_skeleton_guesses_nothing_in_free_text_and_without_a_grammar():
    proposer = SkeletonProposer(TOKENIZER)
    text = sequence(">", '"', 'start: /"[a-zA-Z~]*"/', ("city",))
    assert proposer.propose([sequence("free"), text], 5) == [[], []]


def test_rates_are_learnt_and_forgotten():
    rates = Rates()
    for _ in range(100):
        rates.observe(4, 2)
    assert rates.first > 0.99
    assert 0.4 < rates.following < 0.6  # right once, wrong once
    for _ in range(100):
        rates.observe(4, 0)
    assert rates.first < 0.01
    for _ in range(500):
        rates.forget()
    assert rates.first == pytest.approx(Rates().first, abs=0.01)


class Steps:
    """A speculator on a machine that takes ``token_s`` for a token more, whose guesses are right for ``num_right``."""

    name = "ngram"
    GUESS = tuple(range(50, 57))

    def __init__(self, token_s: float, num_right: int) -> None:
        config = SpeculativeConfig(methods=("ngram",), num_speculative_tokens=7)
        self.speculator = Speculator([self], config, frozenset())
        self.sequence = sequence("prompt")
        self.sequence.max_output_tokens = 1_000_000
        self.sequence.num_computed_tokens = len(self.sequence.token_ids) - 1
        self.sequence.slot = 0
        self.cost = StepCost()
        self.token_s = token_s
        self.num_right = num_right

    def propose(self, sequences, limit: int) -> list[list[int]]:
        return [list(self.GUESS[:limit]) for _ in sequences]

    def close(self) -> None: ...

    def step(self) -> int:
        """Tokens that were verified."""
        (draft,) = self.speculator.drafts([Chunk(self.sequence, 1)], 100, self.cost)
        said = self.GUESS[: self.num_right][: len(draft) + 1]
        for token_id in said if len(said) > len(draft) else (*said, 1):
            self.sequence.append(token_id)
        self.sequence.num_computed_tokens = len(self.sequence.token_ids) - 1
        self.speculator.observe([self.sequence])
        self.cost.observe({0: 1 + len(draft)}, 1 + len(draft), 0.01 + self.token_s * len(draft))
        return len(draft)


def test_drafts_that_cost_nothing_and_are_right_are_always_verified():
    steps = Steps(token_s=0.0001, num_right=7)
    assert [steps.step() for _ in range(50)][-1] == 7


def test_drafts_that_are_never_right_are_given_up():
    steps = Steps(token_s=0.004, num_right=0)
    sizes = [steps.step() for _ in range(200)]
    assert sizes[0] > 0
    assert not any(sizes[20:])


def test_drafts_that_have_become_right_are_noticed_though_none_is_verified():
    steps = Steps(token_s=0.002, num_right=0)
    assert [steps.step() for _ in range(50)][-1] == 0
    steps.num_right = 7
    assert [steps.step() for _ in range(50)][-1] == 7


def test_what_is_right_but_costs_as_much_as_a_step_is_not_verified():
    steps = Steps(token_s=0.02, num_right=1)
    assert [steps.step() for _ in range(100)][-1] == 0


def test_a_method_that_fails_costs_its_guess_only(monkeypatch):
    steps = Steps(token_s=0.0001, num_right=7)
    monkeypatch.setattr(steps, "propose", lambda *_: 1 // 0)
    assert steps.step() == 0
    monkeypatch.undo()
    assert [steps.step() for _ in range(50)][-1] == 7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"methods": ("draft_head",)}, r"draft_head is not supported.*C\+\+ library alone.*ngram, skeleton or"),
        ({"methods": ("ngram",), "num_speculative_tokens": 8}, "at most 7"),
        ({"methods": ("draft_model",)}, "needs a model"),
        ({"methods": ("draft_model",), "model": Path("other")}, "same vocabulary"),
    ],
)
def test_what_cannot_guess_is_refused(fields, message: str):
    config = EngineConfig(model=Path("none"), speculative=SpeculativeConfig(**fields))
    info = FakeRunner(TOKENIZER.vocabulary.size).info
    with pytest.raises(InterlockError, match=message):
        create_speculator(config, info, TOKENIZER, lambda *_: FakeRunner(7))


def test_a_runner_that_cannot_take_tokens_back_gets_no_drafts():
    info = FakeRunner(TOKENIZER.vocabulary.size, capabilities=RunnerCapabilities()).info
    config = EngineConfig(model=Path("none"), speculative=SpeculativeConfig(methods=("ngram",)))
    assert create_speculator(config, info, TOKENIZER, lambda *_: FakeRunner(7)) is None
    assert (
        create_speculator(EngineConfig(model=Path("none")), info, TOKENIZER, lambda *_: FakeRunner(7)) is None
    )
