"""A closing tag inside a JSON string of a parameter is text, for grammar and parser alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.constraints.lowering import lower
from interlock.constraints.providers.registry import create_provider
from interlock.core.argument_syntax import TaggedArguments
from interlock.core.events import ToolCallArguments
from interlock.core.output_format import TextFormat
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import ModelFamily
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls
from interlock.tokenization.byte_tokenizer import byte_tokenizer

TAGGED = [family for family in FAMILIES if isinstance(family.tool_calls.arguments, TaggedArguments)]
SCHEMA = {
    "type": "object",
    "properties": {
        "tags": {"type": ["array", "string"], "items": {"type": "string"}},
        "any": {"type": "object"},
    },
    "required": ["tags"],
}
TOOL = Tool(name="f", parameters=json.dumps(SCHEMA))
CONTEXT = ToolContext(
    effective_tools=(TOOL,), callable_tools=(TOOL,), tool_choice=ToolChoice(mode="required"), constrained=True
)


@pytest.mark.parametrize("family", TAGGED, ids=lambda family: family.name)
def test_a_closing_tag_in_a_string_of_a_list_is_text(family: ModelFamily) -> None:
    syntax, answer = family.tool_calls, family.answer
    assert isinstance(syntax.arguments, TaggedArguments)
    tag = syntax.arguments.closer
    arguments: dict[str, Any] = {"tags": [f'a\\"{tag}', tag], "any": {tag: f"{tag}\n"}}
    around = (answer.open + answer.close, answer.turn_close) if answer and answer.leads_always else ("", "")
    lead = syntax.lead if syntax.always_leads else ""
    turn = around[0] + lead + spell_calls(syntax, [("f", arguments)]) + around[1]

    tokenizer = byte_tokenizer()
    spec = constrain(family, tools=CONTEXT, output_format=TextFormat(), thinking="none")
    assert spec is not None
    grammar = lower(spec, tokenizer.special_tokens).grammar
    ids = tokenizer.encode(turn)
    assert create_provider("llguidance", tokenizer).compile(grammar).matcher().validate(ids) == len(ids)

    for size in (1, 2, len(turn)):
        parser = StreamParser(family, special_tokens=None, thinking="none", tools="parse", declared=(TOOL,))
        events = [event for at in range(0, len(turn), size) for event in parser.push_text(turn[at : at + size])]
        events += parser.finish(truncated=False)
        texts = [event.text for event in events if isinstance(event, ToolCallArguments)]
        assert json.loads("".join(texts)) == arguments


def test_text_that_only_begins_like_json_ends_at_its_tag() -> None:
    family = next(family for family in TAGGED if family.name == "qwen3_coder")
    turn = '<tool_call>\n<function=f>\n<parameter=tags>\n[ "a\n</parameter>\n</function>\n</tool_call>'
    parser = StreamParser(family, special_tokens=None, thinking="none", tools="parse", declared=(TOOL,))
    events = [*parser.push_text(turn), *parser.finish(truncated=False)]
    texts = [event.text for event in events if isinstance(event, ToolCallArguments)]
    assert json.loads("".join(texts)) == {"tags": '[ "a'}
