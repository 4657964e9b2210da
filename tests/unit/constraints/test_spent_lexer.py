"""Copies of a grammar share a lexer that may be used up: only the sequence that does so suffers from it."""

from __future__ import annotations

import random

import pytest

from interlock.constraints import bitmask
from interlock.constraints.providers import llguidance_limits
from interlock.constraints.providers.base import MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceGrammar, LLGuidanceMatcher, LLGuidanceProvider
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
ROWS = bitmask.allocate(4, TOKENIZER.vocabulary.size)
GREEDY = "start: T\nT: /.*a.{12}b.*/ & /.*c.{13}d.*/ & /.*e.{11}f.*/"


@pytest.fixture
def grammar(monkeypatch: pytest.MonkeyPatch) -> LLGuidanceGrammar:
    monkeypatch.setattr(llguidance_limits, "_MAX_LEXER_STATES", 3_000)
    return LLGuidanceProvider(TOKENIZER).compile(GREEDY)


def spend(matcher: LLGuidanceMatcher) -> None:
    """Random text until the lexer has no state left."""
    chooser = random.Random(3)
    for _ in range(20_000):
        matcher.fill(ROWS[0])
        matcher.accept(chooser.choice(b"abcdefx"))


def fits(matcher: LLGuidanceMatcher, text: bytes) -> None:
    for code in text:
        matcher.fill(ROWS[0])
        assert bitmask.is_allowed(ROWS[0], code)
        matcher.accept(code)


def test_who_uses_a_lexer_up_ends_alone(grammar: LLGuidanceGrammar) -> None:
    neighbours = [grammar.matcher() for _ in range(3)]
    for neighbour in neighbours:
        fits(neighbour, b"xa23456789012")
    greedy = grammar.matcher()
    with pytest.raises(MatcherError, match="too many states"):
        spend(greedy)
    fits(neighbours[0], b"9b")
    neighbours[1].rollback(1)
    assert neighbours[1].validate(b"29b") == 3
    fits(neighbours[1], b"29b")
    filler = neighbours[2].parallel_filler(2)
    latest = grammar.matcher()
    filler.fill([(neighbours[2], 1), (latest, 2)], ROWS)
    assert bitmask.is_allowed(ROWS[1], ord("9"))
    assert bitmask.is_allowed(ROWS[2], ord("x"))
    fits(latest, b"xa2345678901234")


def test_a_copy_gets_no_lexer_of_its_own(grammar: LLGuidanceGrammar) -> None:
    copy = grammar.matcher().clone()
    with pytest.raises(MatcherError, match="too many states"):
        spend(copy)


def test_without_renewals_all_copies_say_so_and_the_grammar_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llguidance_limits, "_MAX_LEXER_STATES", 3_000)
    grammar = LLGuidanceProvider(TOKENIZER, renews=False).compile(GREEDY)
    greedy, neighbour = grammar.matcher(), grammar.matcher()
    fits(neighbour, b"xa2")
    assert not grammar.is_spent
    with pytest.raises(MatcherError, match="too many states"):
        spend(greedy)
    with pytest.raises(MatcherError, match="used up"):
        fits(neighbour, b"3")
    assert (greedy.spent_by, neighbour.spent_by) == ("itself", "others")
    assert grammar.is_spent
