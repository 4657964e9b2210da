"""Calls that a model writes inside its thinking, in every family that thinks: one rule, whatever the cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.core.events import ReasoningDelta
from interlock.core.tokenizer import Tokenizer
from interlock.families.base import ModelFamily, Thinking
from interlock.families.registry import FAMILIES
from interlock.families.wire.spell import spell_calls
from tests.contract.feeding import Calls, Feed, pieces

DRAFT: Calls = [("write", {"text": "draft"})]
REAL: Calls = [("write", {"text": "real"})]


@pytest.mark.parametrize("thinking", ["open", "optional"])
@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if family.reasoning], ids=lambda family: family.name
)
def test_a_call_inside_thinking_is_one_only_where_calls_end_thinking(
    family: ModelFamily, thinking: Thinking, family_tokenizer: Callable[[ModelFamily], Tokenizer]
) -> None:
    format_, answer, syntax = family.reasoning, family.answer, family.tool_calls
    assert format_ is not None
    tokenizer = family_tokenizer(family)
    lead = answer.open + answer.close if answer and answer.leads_always else ""
    lead += syntax.lead if syntax.always_leads else ""
    opened = format_.open if thinking == "optional" else ""
    turn = f"{opened}plan {spell_calls(syntax, DRAFT)}{format_.close}{format_.resume}{format_.after_close}"
    turn += lead + spell_calls(syntax, REAL)
    for size in (1, len(turn)):
        cut = pieces(turn, tokenizer, lambda size=size: size)  # type: ignore[misc]
        feed = Feed(family, tokenizer, thinking=thinking).push(cut).finish()
        assert feed.calls() == (DRAFT + REAL if format_.closed_by_tool_call else REAL)
        assert feed.text(ReasoningDelta).startswith("plan ")
        assert ("draft" in feed.text(ReasoningDelta)) is not format_.closed_by_tool_call
        assert not feed.text().strip()
