"""A try-out of a family on a model, at load: one call is rendered, constrained and parsed."""

from __future__ import annotations

import json
import re

from interlock.constraints.lowering import lower
from interlock.core.argument_syntax import NestedTagArguments
from interlock.core.events import ToolCallArguments, ToolCallEnd, ToolCallStart
from interlock.core.messages import Message, ToolCall
from interlock.core.output_format import TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily
from interlock.families.wire.constrain import constrain
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.render import PromptRenderer
from interlock.families.wire.spell import spell_calls

_LOOKS_LIKE_A_TOKEN = re.compile(r"<[|｜][^<>]*>|<[^<>]*[|｜]>")
_PARAMETERS = '{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}'
_TOOL = Tool(name="interlock_probe", description="a tool", parameters=_PARAMETERS)
_ARGUMENTS = {"key": "a value"}


def self_check(family: ModelFamily, tokenizer: Tokenizer, renderer: PromptRenderer) -> tuple[str, ...]:
    """What does not work with this family on this model, one sentence each; empty if all does."""
    checks = (
        _missing_tokens(family, tokenizer),
        _rendering(renderer),
        _constraint(family, tokenizer),
        _parsing(family),
    )
    return tuple(problem for problem in checks if problem)


def _missing_tokens(family: ModelFamily, tokenizer: Tokenizer) -> str:
    known = tokenizer.special_tokens
    tokens = [token for marker in family.markers() for token in _LOOKS_LIKE_A_TOKEN.findall(marker)]
    syntax = family.tool_calls.arguments
    if isinstance(syntax, NestedTagArguments):
        tokens.append(syntax.mark)
    missing = [token for token in dict.fromkeys(tokens) if token not in known]
    if not missing:
        return ""
    return f"the vocabulary has no token for {', '.join(missing)}, which {family.name} uses: matched as text"


def _rendering(renderer: PromptRenderer) -> str:
    call = ToolCall(id="probe0000", name=_TOOL.name, arguments=json.dumps(_ARGUMENTS))
    turns = (
        Message(role="user", content="a question"),
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", content="a result", tool_call_id=call.id),
    )
    try:
        text = renderer.render(turns, (_TOOL,)).text
    except InterlockError as error:
        return f"a conversation with a tool call cannot be rendered: {error.message}"
    shown = text.count(_TOOL.name)
    if not shown:
        return "the prompt shows neither tools nor calls: the model cannot know of them"
    return "" if "a result" in text else "the prompt leaves out results of tools"


def _constraint(family: ModelFamily, tokenizer: Tokenizer) -> str:
    context = ToolContext(
        effective_tools=(_TOOL,),
        callable_tools=(_TOOL,),
        tool_choice=ToolChoice(mode="required"),
        constrained=True,
    )
    try:
        spec = constrain(family, tools=context, output_format=TextFormat(), thinking="none")
        assert spec is not None
        lower(spec, tokenizer.special_tokens)
    except InterlockError as error:
        return f"calls cannot be constrained: {error.message}"
    return ""


def _parsing(family: ModelFamily) -> str:
    parser = StreamParser(family, special_tokens=None, thinking="none", tools="parse", declared=(_TOOL,))
    text = spell_calls(family.tool_calls, [(_TOOL.name, dict(_ARGUMENTS))])
    events = [*parser.push_text(text), *parser.finish(truncated=False)]
    names = [event.name for event in events if isinstance(event, ToolCallStart)]
    arguments = "".join(event.text for event in events if isinstance(event, ToolCallArguments))
    ended = any(isinstance(event, ToolCallEnd) for event in events)
    if names == [_TOOL.name] and ended and json.loads(arguments) == _ARGUMENTS:
        return ""
    return "a call of the family is not read back as it was written"
