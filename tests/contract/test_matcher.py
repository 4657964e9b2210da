"""Every verb of the matcher contract, over every provider, with and without a guard.

All get the same language: the answers ``ab``, ``abcd`` and ``xyz`` over a byte vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from interlock.constraints import bitmask
from interlock.constraints.providers.base import CompiledGrammar, Matcher, MatcherError, Provider
from interlock.constraints.providers.fake import FakeProvider
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.constraints.providers.registry import create_provider
from interlock.constraints.schema.guards.matcher import GuardedGrammar
from interlock.constraints.schema.guards.plan import GuardPlan
from interlock.constraints.schema.guards.turn import Alternative, GuardedTurn, Literal, Value
from interlock.constraints.schema.guards.vocabulary import GuardVocabulary
from interlock.core.tokenizer import Vocabulary
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer(("<|im_start|>", "<|im_end|>", "<|endoftext|>"))
VOCAB_SIZE = TOKENIZER.vocabulary.size
STOPS = TOKENIZER.vocabulary.stop_ids
ANSWERS = ("ab", "abcd", "xyz")


def ids(text: str) -> list[int]:
    return list(text.encode())


class Guarded:
    """A provider whose grammars all have a guard, which finds nothing to watch."""

    name = "guarded"
    turn = GuardedTurn(
        Alternative((Value(0), *(Literal(answer.encode()) for answer in ANSWERS))),
        (GuardPlan((), frozenset()),),
    )

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def vocabulary(self) -> Vocabulary:
        return self._inner.vocabulary

    def compile(self, grammar: str) -> CompiledGrammar:
        return GuardedGrammar(self._inner.compile(grammar), self.turn, GuardVocabulary(self.vocabulary))


LARK = 'start: "ab" ("cd")? | "xyz"'
LISTED = str([ids(answer) for answer in ANSWERS])
PROVIDERS: dict[str, tuple[Callable[[], Provider], str]] = {
    "llguidance": (lambda: LLGuidanceProvider(TOKENIZER), LARK),
    "xgrammar": (lambda: _xgrammar(), 'root ::= "ab" ("cd")? | "xyz"'),
    "fake": (lambda: FakeProvider(TOKENIZER), LISTED),
    "guarded llguidance": (lambda: Guarded(LLGuidanceProvider(TOKENIZER)), LARK),
    "guarded fake": (lambda: Guarded(FakeProvider(TOKENIZER)), LISTED),
}


def _xgrammar() -> Provider:
    pytest.importorskip("xgrammar", reason="the extra xgrammar is not installed")
    return create_provider("xgrammar", TOKENIZER)


@pytest.fixture(scope="module", params=PROVIDERS)
def grammar(request: pytest.FixtureRequest) -> CompiledGrammar:
    make, text = PROVIDERS[request.param]
    return make().compile(text)


@pytest.fixture
def matcher(grammar: CompiledGrammar) -> Matcher:
    return grammar.matcher()


def allowed(matcher: Matcher) -> set[int]:
    row = bitmask.allocate(1, VOCAB_SIZE)[0]
    row[:] = -1
    matcher.fill(row)
    assert not bitmask.unpack(row, row.size * 32)[VOCAB_SIZE:].any(), "tail bits are zero"
    return set(np.flatnonzero(bitmask.unpack(row, VOCAB_SIZE)).tolist())


def accept_all(matcher: Matcher, text: str) -> None:
    for token_id in ids(text):
        matcher.accept(token_id)


def test_fill_gives_the_legal_next_ids(matcher: Matcher) -> None:
    assert allowed(matcher) == set(ids("ax"))
    accept_all(matcher, "a")
    assert allowed(matcher) == set(ids("b"))


def test_fill_changes_nothing(matcher: Matcher) -> None:
    assert allowed(matcher) == allowed(matcher)
    assert matcher.validate(ids("xyz")) == 3


@pytest.mark.parametrize(
    ("text", "following", "accepting", "terminated"),
    [
        ("", set(ids("ax")), False, False),
        ("ab", {*ids("c"), *STOPS}, True, False),
        ("abc", set(ids("d")), False, False),
        ("abcd", set(STOPS), True, True),
        ("xyz", set(STOPS), True, True),
    ],
)
def test_stop_ids_are_legal_exactly_where_the_grammar_may_end(
    matcher: Matcher, text: str, following: set[int], accepting: bool, terminated: bool
) -> None:
    accept_all(matcher, text)
    assert allowed(matcher) == following
    assert matcher.is_accepting is accepting
    assert matcher.is_terminated is terminated


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("text", ["ab", "xyz"])
def test_every_stop_id_terminates(matcher: Matcher, text: str, stop: int) -> None:
    accept_all(matcher, text)
    matcher.accept(stop)
    assert matcher.is_terminated
    assert matcher.is_accepting
    assert allowed(matcher) == set(STOPS)
    assert matcher.forced_tokens() == []
    assert matcher.validate([stop]) == 0


@pytest.mark.parametrize("after", [*STOPS, *ids("c")])
def test_nothing_is_accepted_after_a_stop_id(matcher: Matcher, after: int) -> None:
    accept_all(matcher, "ab")
    matcher.accept(STOPS[0])
    with pytest.raises(MatcherError):
        matcher.accept(after)
    assert matcher.error is not None


@pytest.mark.parametrize(
    ("text", "token_id"),
    [("", ids("b")[0]), ("", STOPS[0]), ("a", STOPS[1]), ("xyz", ids("a")[0]), ("", 256)],
)
def test_an_illegal_token_fails_the_matcher_for_good(matcher: Matcher, text: str, token_id: int) -> None:
    accept_all(matcher, text)
    assert matcher.error is None
    with pytest.raises(MatcherError):
        matcher.accept(token_id)
    assert matcher.error
    rows = bitmask.allocate(2, VOCAB_SIZE)
    verbs: list[Callable[[], object]] = [
        lambda: matcher.fill(rows[0]),
        lambda: matcher.accept(ids("a")[0]),
        lambda: matcher.validate(ids("a")),
        lambda: matcher.rollback(0),
        matcher.forced_tokens,
        lambda: matcher.plan(ids("a"), rows),
        lambda: matcher.is_accepting,
        lambda: matcher.is_terminated,
        matcher.clone,
    ]
    for verb in verbs:
        with pytest.raises(MatcherError):
            verb()


@pytest.mark.parametrize(
    ("before", "draft", "num_valid"),
    [
        ("", ids("abcd"), 4),
        ("", ids("abz"), 2),
        ("", ids("q"), 0),
        ("", [], 0),
        ("a", ids("bcde"), 3),
        ("", [*ids("ab"), STOPS[1]], 3),
        ("", [*ids("ab"), STOPS[1], STOPS[1]], 3),
        ("", [*ids("abc"), STOPS[0]], 3),
        ("abcd", [STOPS[0]], 1),
        ("abcd", ids("a"), 0),
        ("", [STOPS[0]], 0),
    ],
)
def test_validate_gives_the_longest_legal_prefix(
    matcher: Matcher, before: str, draft: list[int], num_valid: int
) -> None:
    accept_all(matcher, before)
    before_mask = allowed(matcher)
    assert matcher.validate(draft) == num_valid
    assert allowed(matcher) == before_mask


@pytest.mark.parametrize(
    ("before", "draft", "num_valid"),
    [
        ("", ids("abcd"), 4),
        ("", ids("abz"), 2),
        ("", ids("q"), 0),
        ("", [], 0),
        ("a", ids("bcd"), 3),
        ("", [*ids("ab"), STOPS[1]], 3),
        ("", [*ids("ab"), STOPS[1], ids("c")[0]], 3),
        ("abcd", [STOPS[0]], 1),
    ],
)
def test_plan_gives_the_masks_of_the_legal_prefix_and_leaves_the_state(
    matcher: Matcher, before: str, draft: list[int], num_valid: int
) -> None:
    accept_all(matcher, before)
    start = allowed(matcher)
    rows = bitmask.allocate(len(draft) + 1, VOCAB_SIZE)
    plan = matcher.plan(draft, rows)
    assert plan.num_valid == num_valid
    assert plan.rows.shape == (num_valid + 1, bitmask.num_words(VOCAB_SIZE))
    assert np.shares_memory(plan.rows, rows)
    assert allowed(matcher) == start
    walker = matcher.clone()
    for index in range(num_valid + 1):
        assert set(np.flatnonzero(bitmask.unpack(plan.rows[index], VOCAB_SIZE)).tolist()) == allowed(walker)
        if index < num_valid:
            walker.accept(draft[index])


@pytest.mark.parametrize("draft", ["abcd", "abz", "q"])
def test_a_draft_longer_than_its_rows_is_an_error_and_changes_nothing(matcher: Matcher, draft: str) -> None:
    start = allowed(matcher)
    rows = bitmask.allocate(len(draft), VOCAB_SIZE)
    with pytest.raises(ValueError, match=f"{len(draft)} tokens needs {len(draft) + 1} rows"):
        matcher.plan(ids(draft), rows)
    assert matcher.error is None
    assert allowed(matcher) == start


@pytest.mark.parametrize(
    ("accepted", "undone"),
    [
        (ids("abcd"), 4),
        (ids("abcd"), 1),
        (ids("ab"), 0),
        ([*ids("ab"), STOPS[0]], 1),
        ([*ids("xyz"), STOPS[1]], 3),
    ],
)
def test_rollback_undoes_tokens_and_termination(matcher: Matcher, accepted: list[int], undone: int) -> None:
    masks = []
    for token_id in accepted:
        masks.append(allowed(matcher))
        matcher.accept(token_id)
    masks.append(allowed(matcher))
    matcher.rollback(undone)
    assert allowed(matcher) == masks[len(accepted) - undone]
    for token_id in accepted[len(accepted) - undone :]:
        matcher.accept(token_id)
    assert allowed(matcher) == masks[-1]


@pytest.mark.parametrize("num_tokens", [-1, 2])
def test_rollback_of_what_was_not_accepted_is_a_mistake_of_the_caller(
    matcher: Matcher, num_tokens: int
) -> None:
    accept_all(matcher, "a")
    with pytest.raises(ValueError, match="cannot undo"):
        matcher.rollback(num_tokens)
    assert matcher.error is None


@pytest.mark.parametrize(
    ("before", "forced"), [("", []), ("a", ids("b")), ("x", ids("yz")), ("ab", []), ("xyz", [])]
)
def test_forced_tokens_are_what_must_come(matcher: Matcher, before: str, forced: list[int]) -> None:
    accept_all(matcher, before)
    assert matcher.forced_tokens() == forced
    assert matcher.validate(forced) == len(forced)


def test_a_clone_goes_its_own_way(matcher: Matcher) -> None:
    accept_all(matcher, "a")
    clone = matcher.clone()
    accept_all(clone, "bcd")
    clone.accept(STOPS[0])
    assert allowed(matcher) == set(ids("b"))
    assert clone.clone().is_terminated
    clone.rollback(3)
    assert allowed(clone) == {*ids("c"), *STOPS}


def test_matchers_of_one_grammar_are_independent(grammar: CompiledGrammar) -> None:
    first, second = grammar.matcher(), grammar.matcher()
    accept_all(first, "xy")
    assert allowed(second) == set(ids("ax"))
    assert grammar.num_bytes > 0


def test_close_is_idempotent(matcher: Matcher) -> None:
    matcher.close()
    matcher.close()
    assert matcher.error is not None


def test_a_parallel_filler_fills_as_fill_does(grammar: CompiledGrammar) -> None:
    matchers = [grammar.matcher() for _ in range(6)]
    for matcher, text in zip(matchers, ["", "a", "ab", "abcd", "x", "q"], strict=True):
        if text == "q":
            with pytest.raises(MatcherError):
                accept_all(matcher, text)
        else:
            accept_all(matcher, text)
    matchers[3].accept(STOPS[0])
    filler = matchers[0].parallel_filler(2)
    if filler is None:
        return  # this engine fills one by one
    rows: NDArray[np.int32] = bitmask.allocate(8, VOCAB_SIZE)
    filler.fill([(matcher, index + 1) for index, matcher in enumerate(matchers)], rows)
    for index, matcher in enumerate(matchers[:5]):
        found = set(np.flatnonzero(bitmask.unpack(rows[index + 1], VOCAB_SIZE)).tolist())
        assert found == allowed(matcher)
    assert matchers[5].error is not None
    assert not rows[0].any()
    assert not rows[7].any()


@pytest.mark.parametrize(
    ("name", "grammar_text"),
    [
        ("llguidance", "start: (("),
        ("xgrammar", "root ::= (("),
        ("llguidance", 'start: A\nA: "a" & "b"'),
        ("fake", "[]"),
        ("fake", "x"),
    ],
)
def test_compile_refuses_what_is_malformed_or_matches_nothing(name: str, grammar_text: str) -> None:
    with pytest.raises(InterlockError) as caught:
        PROVIDERS[name][0]().compile(grammar_text)
    assert caught.value.code == "invalid_grammar"
