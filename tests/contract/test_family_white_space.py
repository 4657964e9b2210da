"""A model that writes white space wherever it is legal comes to an end: in the calls of every family."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from interlock.constraints.bitmask import allocate, allowed_ids
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher
from interlock.constraints.providers.registry import create_provider
from interlock.core.output_format import TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import ModelFamily
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.families.wire.spell import spell_calls

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "on": {"type": "boolean"},
            "items": {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
            "in": {"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"]},
        },
        "required": ["on", "items", "in"],
    }
)
TOOL = Tool(name="f", parameters=SCHEMA)
CALL = ToolContext(
    effective_tools=(TOOL,),
    callable_tools=(TOOL,),
    tool_choice=ToolChoice(mode="required"),
    parallel_tool_calls=False,
    constrained=True,
)
WHITE = {b" ", b"\t", b"\n", b"\r"}
MOST = 2_000  # tokens, far above what a turn can need


def spaced_out(matcher: Matcher, tokenizer: Tokenizer) -> str:
    """The turn of a model that prefers white space to everything, and everything to the end."""
    tokens, row = tokenizer.vocabulary.tokens, allocate(1, tokenizer.vocabulary.size)[0]
    said: list[int] = []
    for _ in range(MOST):
        matcher.fill(row)
        legal = [token_id for token_id in allowed_ids(row) if token_id not in tokenizer.vocabulary.stop_ids]
        if not legal:
            return tokenizer.decode(said)
        said.append(min(legal, key=lambda token_id: (tokens[token_id] not in WHITE, token_id)))
        matcher.accept(said[-1])
    raise AssertionError(f"no end: {tokenizer.decode(said)[-100:]!r}")


def longest_run(text: str) -> int:
    """Of white space."""
    return max(map(len, re.findall(r"\s+", text)), default=0)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_call_full_of_white_space_ends(
    family: ModelFamily, family_tokenizer: Callable[[ModelFamily], Tokenizer]
) -> None:
    spec = constrain(family, tools=CALL, output_format=TextFormat(), thinking="none")
    assert spec is not None
    tokenizer = family_tokenizer(family)
    grammar = lower(spec, tokenizer.special_tokens).grammar
    text = spaced_out(create_provider("llguidance", tokenizer).compile(grammar).matcher(), tokenizer)
    own = spell_calls(family.tool_calls, [("f", {"on": True, "items": [None], "in": {"k": True}})])
    assert longest_run(text) <= max(longest_run(own), 2), text
