"""Whatever a stubborn model writes in the calls of a family: items that must differ do, all of a small domain is used up,
and the family's parser reads valid arguments."""

from __future__ import annotations

import codecs
import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest

from interlock.constraints.bitmask import allowed_ids, num_words
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import CompiledGrammar
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.events import ParserEvent, ToolCallArguments
from interlock.core.output_format import TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import ModelFamily
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.families.wire.parse import StreamParser

SYNTAXES = (
    "qwen3_coder",
    "deepseek_v4",
    "kimi_k3",
    "gemma4",
    "llama4",
    "lfm2",
    "minimax_m3",
)


def unique(items: Any, low: int, high: int | None = None) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, "minItems": low, "maxItems": high or low}


def record(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


PAIR = record(x={"enum": ["red", "re"]}, y={"enum": [1, 12]})
PARAMETERS = {
    "strings": unique({"type": "string", "pattern": "^[ab]{1,2}$"}, 6),
    "integers": unique({"type": "integer", "minimum": 7, "maximum": 12}, 6),
    "products": unique(PAIR, 4),
    "nested": unique(unique(PAIR, 1, 2), 5),
    "mixed": unique({"anyOf": [{"type": "boolean"}, {"enum": [None, 1.5, "x", "1.5x"]}, record(a={"const": 1})]}, 6, 7),
    "deep": record(found=unique(record(tags=unique({"enum": ["p", "q"]}, 1)), 2)),
    "free": unique({"type": "string", "maxLength": 2}, 3, 4),
    "map": {
        "type": "object",
        "propertyNames": {"pattern": "^[ab]{1,5}$"},
        "additionalProperties": {"anyOf": [{"enum": [1, "a"]}, {"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 3}]},
        "maxProperties": 4,
    },
}  # fmt: skip


class Walk:
    """One call of a tool with one parameter, token by token."""

    def __init__(
        self, family: ModelFamily, tokenizer: Tokenizer, grammar: CompiledGrammar, tool: Tool, seed: int
    ) -> None:
        self._vocabulary = tokenizer.vocabulary
        self._spelling = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
        self._parser = StreamParser(
            family, special_tokens=self._spelling, thinking="none", tools="parse", declared=[tool]
        )
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._matcher = grammar.matcher()
        self._chooser = random.Random(seed)
        self._rows = np.zeros((4, num_words(self._vocabulary.size)), np.int32)
        self._taken: list[int] = []
        self.events: list[ParserEvent] = []

    def run(self, *, drafted: bool) -> Any:
        """The arguments that the parser reads. No key is in them twice."""
        while True:
            allowed = self._allowed(drafted)
            if any(token_id in self._vocabulary.stop_ids for token_id in allowed):
                break
            self._push(self._choice(allowed))
        self.events += self._parser.finish(False)
        text = "".join(one.text for one in self.events if isinstance(one, ToolCallArguments))
        return json.loads(text, object_pairs_hook=_members)

    def _allowed(self, drafted: bool) -> list[int]:
        row = self._rows[0]
        if drafted:
            row = self._matcher.plan(self._taken[-3:], self._rows).rows[0]
        else:
            self._matcher.fill(row)
        return allowed_ids(row)

    def _choice(self, allowed: list[int]) -> int:
        """What came last time in the same place, mostly."""
        taken, tail = self._taken, self._taken[-3:]
        if self._chooser.random() < 0.7:
            for start in range(len(taken) - 4, -1, -1):
                if taken[start : start + 3] == tail and taken[start + 3] in allowed:
                    return taken[start + 3]
        plain = [
            token_id for token_id in allowed if token_id > 255 or chr(token_id).isalnum() or token_id in b'"],}'
        ]
        return self._chooser.choice(plain or allowed)  # fmt: skip

    def _push(self, token_id: int) -> None:
        self._matcher.accept(token_id)
        self._taken.append(token_id)
        if token_id in self._spelling:
            self.events += self._parser.push_token(token_id, self._spelling[token_id])
        else:
            self.events += self._parser.push_text(self._decoder.decode(self._vocabulary.tokens[token_id]))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


@pytest.mark.parametrize("name", SYNTAXES)
def test_all_of_a_small_domain_is_used_up_in_every_syntax(
    name: str, family_tokenizer: Callable[[ModelFamily], Tokenizer]
) -> None:
    family = next(one for one in FAMILIES if one.name == name)
    tokenizer = family_tokenizer(family)
    compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
    for seed, (key, schema) in enumerate(PARAMETERS.items()):
        tool = Tool(name="mark", parameters=json.dumps(record(**{key: schema})))
        context = ToolContext(
            effective_tools=(tool,),
            callable_tools=(tool,),
            tool_choice=ToolChoice(mode="required"),
            parallel_tool_calls=False,
            constrained=True,
        )
        spec = constrain(family, tools=context, output_format=TextFormat(), thinking="none")
        assert spec is not None
        grammar = compiler.prepare(lower(spec, tokenizer.special_tokens)).result(30)
        arguments = Walk(family, tokenizer, grammar, tool, seed).run(drafted=seed % 2 == 0)
        jsonschema.validate(arguments, record(**{key: schema}))
