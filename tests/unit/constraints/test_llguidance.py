"""What is particular to the llguidance provider: panics, limits, messages, and verbs in any order."""

from __future__ import annotations

import json
import random

import llguidance
import numpy as np
import pytest

from interlock.constraints import bitmask
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher, MatcherError
from interlock.constraints.providers.llguidance import LLGuidanceMatcher, LLGuidanceProvider
from interlock.constraints.providers.llguidance_errors import message_of
from interlock.core.constraint import (
    Alternative,
    ConstraintSpec,
    FreeText,
    JsonValue,
    Marker,
    Repeat,
    Sequence,
    Text,
)
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TOKENIZER = byte_tokenizer()
SIZE = TOKENIZER.vocabulary.size
STOPS = TOKENIZER.vocabulary.stop_ids
PROVIDER = LLGuidanceProvider(TOKENIZER)

CALL = Sequence(
    (Marker("<tool_call>"), Text("f"), JsonValue('{"type": "string", "maxLength": 3}'), Text("</f>"))
)
SPEC = ConstraintSpec(
    root=Alternative((Sequence((FreeText(("ab",)), Marker("!"), Text("z"))), Repeat(CALL, 1, 3, Text("\n"))))
)


_COMBINATIONS = [{"anyOf": [{"required": [f"p{row}{column}"]} for column in range(6)]} for row in range(12)]


class PanicException(BaseException):
    """As native code raises it."""


class Broken:
    """A native matcher whose calls raise."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getattr__(self, name: str) -> object:
        def call(*args: object) -> object:
            raise self.error

        return call


def mask(matcher: Matcher) -> list[int]:
    row = bitmask.allocate(1, SIZE)[0]
    matcher.fill(row)
    return [int(token_id) for token_id in np.flatnonzero(bitmask.unpack(row, SIZE))]


@pytest.mark.parametrize("seed", range(6))
def test_verbs_in_any_order_leave_the_state_of_a_replay(seed: int) -> None:
    grammar = PROVIDER.compile(lower(SPEC, TOKENIZER.special_tokens).grammar)
    chance = random.Random(seed)
    matcher: Matcher = grammar.matcher()
    accepted: list[int] = []
    rows = bitmask.allocate(9, SIZE)
    for _ in range(60):
        replay = grammar.matcher()
        for token_id in accepted:
            replay.accept(token_id)
        legal = mask(matcher)
        assert legal == mask(replay)
        assert matcher.is_accepting == replay.is_accepting
        assert matcher.is_terminated == replay.is_terminated
        draft = [chance.choice(legal)] + [chance.choice(range(SIZE)) for _ in range(4)]
        match chance.choice(("accept", "accept", "accept", "rollback", "plan", "validate", "clone", "forced")):
            case "accept" if not (accepted and accepted[-1] in STOPS):
                accepted.append(draft[0])
                matcher.accept(draft[0])
            case "rollback":
                count = chance.randint(0, len(accepted))
                matcher.rollback(count)
                accepted = accepted[: len(accepted) - count]
            case "plan":
                assert matcher.plan(draft, rows).num_valid == replay.validate(draft)
            case "validate":
                assert matcher.validate(draft) == replay.plan(draft, rows).num_valid
            case "clone":
                matcher = matcher.clone()
            case "forced":
                assert matcher.validate(forced := matcher.forced_tokens()) == len(forced)
            case _:
                pass


def test_a_panic_fails_the_matcher_with_a_typed_error() -> None:
    matcher = LLGuidanceMatcher(
        Broken(PanicException("index out of range")), frozenset(STOPS), bitmask.num_words(SIZE)
    )
    with pytest.raises(MatcherError, match="panicked: index out of range"):
        mask(matcher)
    with pytest.raises(MatcherError, match="panicked"):
        matcher.accept(1)


def test_an_interrupt_is_no_failure_of_the_matcher() -> None:
    matcher = LLGuidanceMatcher(Broken(KeyboardInterrupt()), frozenset(STOPS), bitmask.num_words(SIZE))
    with pytest.raises(KeyboardInterrupt):
        mask(matcher)
    assert matcher.error is None


def test_a_panic_of_the_compile_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*args: object, **options: object) -> None:
        raise PanicException("s.1.is_null()")

    monkeypatch.setattr(llguidance, "LLMatcher", panic)
    with pytest.raises(InterlockError) as caught:
        PROVIDER.compile("start: /a/")
    assert caught.value.code == "invalid_grammar"


@pytest.mark.parametrize(
    ("grammar", "code"),
    [
        ("start: (", "invalid_grammar"),
        ("start: <nope>", "invalid_grammar"),
        ('start: A\nA: "a" & "b"', "invalid_grammar"),
        ('start: "" & "b"', "invalid_grammar"),
        ("start: %json " + json.dumps({"allOf": _COMBINATIONS}), "constraint_too_complex"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refusals_of_the_compile_have_a_code(grammar: str, code: str) -> None:
    with pytest.raises(InterlockError) as caught:
        PROVIDER.compile(grammar)
    assert caught.value.code == code


def test_a_mask_that_passes_a_limit_fails_its_matcher_in_bounded_time() -> None:
    matcher = PROVIDER.compile("start: /((a{1,100}){1,100}){1,100}/").matcher()
    with pytest.raises(MatcherError, match="too many"):  # noqa: PT012 - somewhere on the way
        for _ in range(1_000):
            matcher.accept(mask(matcher)[0])
    assert matcher.error is not None


def test_a_row_of_the_wrong_size_is_a_mistake_of_the_caller() -> None:
    matcher = PROVIDER.compile("start: /a*/").matcher()
    with pytest.raises(ValueError, match="a mask row is int32"):
        matcher.fill(np.zeros(1, dtype=np.int32))
    assert matcher.error is None


@pytest.mark.parametrize(
    ("native", "message"),
    [
        ("bad\n<state>\nTokens", "bad"),
        ("NoExtensionBias\n<non-verbose/>", "NoExtensionBias"),
        ("bad\nStack backtrace:\n 0: x", "bad"),
        ("", "no message"),
        ("x" * 5_000, "x" * 800),
    ],
)
def test_messages_are_without_native_state(native: str, message: str) -> None:
    assert message_of(native) == message


def test_a_vocabulary_needs_a_stop_id() -> None:
    with pytest.raises(ValueError, match="stop id"):
        LLGuidanceProvider(byte_tokenizer(("<a>",)))
