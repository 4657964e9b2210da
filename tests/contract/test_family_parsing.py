"""What every family's parser promises: calls that the family writes are read back, however the text is cut."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.constraints.lowering import lower
from interlock.constraints.providers.registry import create_provider
from interlock.core.events import ReasoningDelta, ToolCallArguments, ToolCallEnd
from interlock.core.output_format import TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.families.wire.spell import spell_calls
from tests.contract.feeding import Calls, Feed, pieces

Tokenizers = Callable[[ModelFamily], Tokenizer]

pytestmark = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12) | st.sampled_from(
    ["null", "true", "5", " a\n", "\n", "[1]", '{"a"', "it's", '"', "a, b=c)", "}]", "\\n", "&amp;"]
)
KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "integer": st.integers(-(10**20), 10**20),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "array": st.lists(st.integers() | st.booleans(), min_size=1, max_size=3),
}


@st.composite
def tools_and_calls(draw: st.DrawFn) -> tuple[tuple[Tool, ...], Calls]:
    tools, calls = [], []
    for name in draw(
        st.lists(
            st.from_regex(r"[a-z_][A-Za-z0-9_-]{0,12}", fullmatch=True), min_size=1, max_size=3, unique=True
        )
    ):
        kinds = draw(st.dictionaries(KEYS.filter("o".__ne__), st.sampled_from(sorted(VALUES)), max_size=4))
        arrays = {"type": "array", "items": {"type": ["integer", "boolean"]}}
        properties = {key: arrays if kind == "array" else {"type": kind} for key, kind in kinds.items()}
        inner = {"type": "object", "properties": {"deep": {"type": "string"}}}
        tools.append(
            Tool(name=name, parameters=json.dumps({"type": "object", "properties": {**properties, "o": inner}}))
        )
        arguments = {key: draw(VALUES[kind]) for key, kind in kinds.items()}
        arguments["o"] = {"deep": draw(TEXT)}
        calls.append((name, arguments))
    return tuple(tools), calls


def assert_legal(family: ModelFamily, tokenizer: Tokenizer, tools: tuple[Tool, ...], calls: str) -> None:
    """A turn of these calls is one that the grammar lets through."""
    context = ToolContext(
        effective_tools=tools,
        callable_tools=tools,
        tool_choice=ToolChoice(mode="required"),
        constrained=True,
    )
    spec = constrain(family, tools=context, output_format=TextFormat(), thinking="none")
    assert spec is not None
    provider = create_provider("llguidance", tokenizer)
    matcher = provider.compile(lower(spec, tokenizer.special_tokens).grammar).matcher()
    answer = family.answer
    before = answer.open + answer.close if answer and answer.leads_always else ""
    before += family.tool_calls.lead if family.tool_calls.always_leads else ""
    ids = tokenizer.encode(before + calls + (answer.turn_close if answer else ""))
    legal = matcher.validate(ids)
    assert legal == len(ids), tokenizer.decode(ids[max(0, legal - 90) :])


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=tools_and_calls(), chance=st.randoms(use_true_random=False))
def test_written_calls_are_read_back(
    family: ModelFamily, family_tokenizer: Tokenizers, drawn: Any, chance: random.Random
) -> None:
    tokenizer = family_tokenizer(family)
    tools, calls = drawn
    calls = calls[:1] if family.tool_calls.single else calls
    try:
        turn = spell_calls(family.tool_calls, calls)
    except InterlockError:
        return  # a text that the format cannot hold
    assert_legal(family, tokenizer, tools, turn)
    for size in (lambda: 1, lambda: len(turn), lambda: chance.randint(1, 9)):
        feed = Feed(family, tokenizer, tools).push(pieces(turn, tokenizer, size)).finish()
        assert feed.calls() == calls
        assert not feed.text()


TOOL = Tool(
    name="write",
    parameters='{"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}',
)


def test_every_cut_of_a_turn_gives_the_same(family: ModelFamily, family_tokenizer: Tokenizers) -> None:
    tokenizer = family_tokenizer(family)
    thought = "" if family.reasoning is None else f"{family.reasoning.open}hm{family.reasoning.close}"
    before = "" if family.tool_calls.bare else "So: "
    after_thought = family.reasoning.resume if family.reasoning else ""
    calls: Calls = [("write", {"text": "a b", "n": 12})]
    turn = thought + after_thought + before + spell_calls(family.tool_calls, calls)
    whole = pieces(turn, tokenizer, lambda: len(turn))
    for at, piece in enumerate(whole):
        for cut in range(1, len(piece)) if piece not in tokenizer.special_tokens else ():
            parts = [*whole[:at], piece[:cut], piece[cut:], *whole[at + 1 :]]
            feed = Feed(family, tokenizer, (TOOL,)).push(parts).finish()
            assert feed.calls() == calls
            assert feed.text(ReasoningDelta) == ("hm" if thought else "")
            assert feed.text().strip() == before.strip()


def test_a_cut_call_is_never_whole_and_never_contradicted(
    family: ModelFamily, family_tokenizer: Tokenizers
) -> None:
    tokenizer = family_tokenizer(family)
    turn = spell_calls(family.tool_calls, [("write", {"text": 'a\\b "c"', "n": -1.5e3})])
    whole = pieces(turn, tokenizer, lambda: 1)
    full = Feed(family, tokenizer, (TOOL,)).push(whole).finish().arguments(0)
    for end in range(len(whole)):
        feed = Feed(family, tokenizer, (TOOL,)).push(whole[:end]).finish(truncated=True)
        assert full.startswith(feed.arguments(0))
        if any(isinstance(event, ToolCallEnd) for event in feed.events):
            assert feed.arguments(0) == full


@pytest.mark.parametrize(
    "kind", ['{"type": "string"}', '{"anyOf": [{"type": "string"}, {"type": "null"}]}', "true"]
)
def test_string_arguments_stream(family: ModelFamily, family_tokenizer: Tokenizers, kind: str) -> None:
    tokenizer = family_tokenizer(family)
    tool = Tool(name="write", parameters=f'{{"type": "object", "properties": {{"text": {kind}}}}}')
    turn = spell_calls(family.tool_calls, [("write", {"text": "word " * 400})])
    feed = Feed(family, tokenizer, (tool,)).push(pieces(turn, tokenizer, lambda: 5))
    assert sum(isinstance(event, ToolCallArguments) for event in feed.events) > 300


def test_long_arguments_take_linear_time(family: ModelFamily, family_tokenizer: Tokenizers) -> None:
    tokenizer = family_tokenizer(family)
    text = 'Some <b>text</b>, {with} "quotes" and it\'s long.\n' * 800
    parts = pieces(spell_calls(family.tool_calls, [("write", {"text": text})]), tokenizer, lambda: 64)
    start = time.process_time()
    feed = Feed(family, tokenizer, (TOOL,)).push(parts).finish()
    assert time.process_time() - start < 2  # it takes some milliseconds; the machine may be busy
    assert feed.calls() == [("write", {"text": text})]
