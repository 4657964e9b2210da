from __future__ import annotations

import pytest

from interlock.core.engine import ThinkingBudget
from interlock.core.request import ReasoningOptions
from interlock.errors import InterlockError
from interlock.families.base import ReasoningFormat
from interlock.families.harmony import FAMILY as HARMONY
from interlock.resolve.reasoning import resolve_reasoning, resolve_thinking_budget
from interlock.tokenization.byte_tokenizer import byte_tokenizer

THINK = ReasoningFormat(open="<think>", close="</think>")
TOKENIZER = byte_tokenizer()
OPEN, CLOSE = (TOKENIZER.special_tokens[text] for text in ("<think>", "</think>"))


@pytest.mark.parametrize(
    ("options", "kwargs", "enabled"),
    [
        (ReasoningOptions(), {}, None),
        (ReasoningOptions(enabled=True), {}, True),
        (ReasoningOptions(effort="none"), {}, False),
        (ReasoningOptions(effort="low"), {}, True),
        (ReasoningOptions(), {"enable_thinking": False}, False),
        (ReasoningOptions(enabled=False, effort="none"), {"enable_thinking": False, "x": 1}, False),
    ],
)
def test_thinking_is_on_or_off_by_whatever_field_says_so(options, kwargs, enabled):
    assert resolve_reasoning(options, kwargs, THINK).enabled is enabled


@pytest.mark.parametrize(
    ("options", "kwargs", "format_", "code", "param"),
    [
        (ReasoningOptions(effort="much"), {}, THINK, "invalid_value", "reasoning_effort"),
        (ReasoningOptions(budget=-1), {}, THINK, "invalid_value", "thinking_budget"),
        (
            ReasoningOptions(enabled=True, effort="none"),
            {},
            THINK,
            "conflicting_parameters",
            "reasoning_effort",
        ),
        (
            ReasoningOptions(effort="high"),
            {"enable_thinking": False},
            THINK,
            "conflicting_parameters",
            "chat_template_kwargs.enable_thinking",
        ),
        (ReasoningOptions(enabled=True), {}, None, "unsupported_parameter", "enable_thinking"),
        (ReasoningOptions(effort="low"), {}, None, "unsupported_parameter", "reasoning_effort"),
    ],
)
def test_what_cannot_be_honoured_is_refused(options, kwargs, format_, code, param):
    with pytest.raises(InterlockError) as caught:
        resolve_reasoning(options, kwargs, format_)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_a_model_that_does_not_think_can_be_told_not_to():
    assert resolve_reasoning(ReasoningOptions(effort="none"), {}, None).enabled is False


def budget(requested: int | None, **changes: object) -> tuple[ThinkingBudget | None, tuple[str, ...]]:
    facts: dict[str, object] = {
        "thinking": "open",
        "format_": THINK,
        "tokenizer": TOKENIZER,
        "constrained": True,
        "max_tokens": 1000,
        "cap": 4096,
    }
    return resolve_thinking_budget(requested, **(facts | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("max_tokens", "tokens"), [(1000, 500), (1, 0), (100_000, 4096)])
def test_a_constrained_answer_keeps_half_of_the_tokens_and_says_so(max_tokens, tokens):
    chosen, notes = budget(None, max_tokens=max_tokens)
    assert chosen == ThinkingBudget(max_tokens=tokens, close_ids=(CLOSE,))
    assert len(notes) == 1
    assert f" {tokens} tokens" in notes[0]


def test_a_requested_budget_is_taken_as_it_is_without_a_note():
    assert budget(7) == (ThinkingBudget(max_tokens=7, close_ids=(CLOSE,)), ())
    assert budget(0, constrained=False) == (ThinkingBudget(max_tokens=0, close_ids=(CLOSE,)), ())


def test_where_the_model_opens_thinking_itself_the_budget_waits_for_it():
    assert budget(7, thinking="optional")[0] == ThinkingBudget(
        max_tokens=7, close_ids=(CLOSE,), open_ids=(OPEN,)
    )


@pytest.mark.parametrize(
    "changes",
    [{"constrained": False}, {"thinking": "none"}, {"thinking": "closed"}, {"format_": None}],
)
def test_no_budget_is_made_up_where_none_is_needed(changes):
    assert budget(None, **changes) == (None, ())


def test_a_marker_of_several_tokens_bounds_thinking_between_special_tokens():
    tokenizer = byte_tokenizer(("<|open|>", "<|close|>", "<|sep|>"), stop_tokens=())
    xtml = ReasoningFormat(open="<|open|>think<|sep|>", close="<|close|>think<|sep|>")
    chosen = budget(7, tokenizer=tokenizer, format_=xtml, thinking="optional")[0]
    assert chosen == ThinkingBudget(
        max_tokens=7, open_ids=(256, *b"think", 258), close_ids=(257, *b"think", 258)
    )


def test_where_thinking_comes_in_several_messages_the_budget_counts_all_of_them():
    tokenizer = byte_tokenizer(("<|channel|>", "<|message|>", "<|end|>", "<|start|>"), stop_tokens=())
    chosen = budget(7, tokenizer=tokenizer, format_=HARMONY.reasoning, thinking="optional")[0]
    opened = (256, *b"analysis", 257)
    assert chosen == ThinkingBudget(
        max_tokens=7, open_ids=opened, close_ids=(258,), reopen_ids=(259, *b"assistant", *opened)
    )


def test_markers_that_are_no_tokens_cannot_bound_thinking():
    plain = byte_tokenizer(special_tokens=("<|im_end|>",))
    assert budget(None, tokenizer=plain) == (None, ())
    with pytest.raises(InterlockError) as caught:
        budget(7, tokenizer=plain)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "thinking_budget")
