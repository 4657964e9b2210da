"""What every family promises: render, grammar and parser agree, over any vocabulary.

What the family spells is accepted by its grammar, and whatever its grammar lets through is read by its parser
without an error and keeps the contract of the request.
"""

from __future__ import annotations

import codecs
import itertools
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import numpy as np
import pytest

from interlock.constraints.bitmask import num_words
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Provider
from interlock.constraints.providers.registry import create_provider
from interlock.core.constraint import ConstraintSpec
from interlock.core.events import (
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.output_format import ChoiceFormat, JsonSchemaFormat, OutputFormat, TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import ModelFamily, Thinking
from interlock.families.registry import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls

Tokenizers = Callable[[ModelFamily], Tokenizer]

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Oslo", "Århus", "null", "<b>"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "unit": {"enum": ["C", None, 3]},
    },
    "required": ["city"],
}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 9},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        "where": {
            "type": "object",
            "properties": {"line": {"type": ["integer", "null"]}, "file": {"type": "string", "maxLength": 3}},
            "required": ["line"],
        },
        "flag": {"type": ["boolean", "string"], "maxLength": 6},
        "any": {},
    },
}
SCHEMAS = {"get_weather": WEATHER, "get_weather-2": NOTE}  # one name begins the other
TOOLS = tuple(Tool(name=name, parameters=json.dumps(schema)) for name, schema in SCHEMAS.items())
ANSWER: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
CALLS: list[list[tuple[str, dict[str, Any]]]] = [
    [("get_weather", {"city": "Oslo"})],
    [("get_weather", {"unit": None, "city": "null", "days": 0})],
    [
        ("get_weather-2", {}),
        ("get_weather-2", {"text": ' a"\\\n}', "tags": [True, False], "flag": "trues", "any": "x"}),
        ("get_weather-2", {"where": {"file": "", "line": None}, "flag": False, "text": ""}),
        ("get_weather", {"city": "Århus", "days": 7}),
    ],
]

pytestmark = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def spec_for(
    family: ModelFamily, mode: Any, thinking: Thinking, output_format: OutputFormat, parallel: bool
) -> Any:
    tools = TOOLS if mode != "none" else ()
    context = ToolContext(
        effective_tools=tools,
        callable_tools=tools,
        tool_choice=ToolChoice(mode=mode),
        parallel_tool_calls=parallel,
        constrained=bool(tools),
    )
    return constrain(family, tools=context, output_format=output_format, thinking=thinking)


class Grammar:
    """A compiled constraint over a vocabulary."""

    def __init__(self, spec: ConstraintSpec, tokenizer: Tokenizer, provider: Provider) -> None:
        self.tokenizer = tokenizer
        self.compiled = provider.compile(lower(spec, tokenizer.special_tokens).grammar)


class Turn:
    """A turn of one request, fed token by token to matcher and parser."""

    def __init__(self, family: ModelFamily, grammar: Grammar, thinking: Thinking) -> None:
        self._tokenizer = grammar.tokenizer
        self._vocabulary = self._tokenizer.vocabulary
        self.matcher = grammar.compiled.matcher()
        self._spelling = {token_id: text for text, token_id in self._tokenizer.special_tokens.items()}
        self._parser = StreamParser(
            family, special_tokens=self._spelling, thinking=thinking, tools="parse", declared=TOOLS
        )
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._row = np.zeros(num_words(self._vocabulary.size), np.int32)
        self._markers = [family.tool_calls.opener or family.tool_calls.bare]
        if family.reasoning is not None:
            self._markers += [family.reasoning.close, family.reasoning.close]
        self.events: list[ParserEvent] = []

    def allowed(self) -> list[int]:
        self.matcher.fill(self._row)
        bits = np.unpackbits(self._row.view(np.uint8), bitorder="little")[: self._vocabulary.size]
        return [int(token_id) for token_id in np.flatnonzero(bits)]

    def push(self, token_id: int) -> None:
        self.matcher.accept(token_id)
        if token_id in self._spelling:
            self.events += self._parser.push_token(token_id, self._spelling[token_id])
        else:
            self.events += self._parser.push_text(self._decoder.decode(self._vocabulary.tokens[token_id]))

    def finish(self, *, truncated: bool = False) -> None:
        self.events += self._parser.finish(truncated)

    def walk(self, chance: random.Random, limit: int) -> bool:
        """Random legal tokens; true if the turn ended by itself."""
        for _ in range(limit):
            allowed = self.allowed()
            stops = [token_id for token_id in allowed if token_id in self._vocabulary.stop_ids]
            assert allowed
            if stops and (len(stops) == len(allowed) or chance.random() < 0.3):
                self.finish()
                return True
            if chance.random() < 0.1 and self._push_marker(chance):
                continue
            legal = [token_id for token_id in allowed if token_id not in stops]
            # strings, thoughts and lists end some day
            closing = [token_id for token_id in legal if token_id >= 256 or token_id in b'"}]<\n()=:']
            self.push(chance.choice(closing if closing and chance.random() < 0.45 else legal))
        self.finish(truncated=True)
        return False

    def _push_marker(self, chance: random.Random) -> bool:
        """A marker, where it is legal: chance alone seldom spells one."""
        ids = self._tokenizer.encode(chance.choice(self._markers))
        if self.matcher.validate(ids) < len(ids):
            return False
        for token_id in ids:
            self.push(token_id)
        return True

    def calls(self) -> list[tuple[str, Any]]:
        starts = [event for event in self.events if isinstance(event, ToolCallStart)]
        ends = [event.index for event in self.events if isinstance(event, ToolCallEnd)]
        assert ends == list(range(len(starts)))[: len(ends)]
        assert len({start.id for start in starts}) == len(starts)
        arguments = ["" for _ in starts]
        for event in self.events:
            if isinstance(event, ToolCallArguments):
                arguments[event.index] += event.text
        return [(start.name, json.loads(arguments[start.index])) for start in starts[: len(ends)]]

    def text(self, kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
        return "".join(event.text for event in self.events if isinstance(event, kind))


def thinking_text(family: ModelFamily) -> str:
    format_ = family.reasoning
    if format_ is None:
        return ""
    return f"{format_.open}{format_.after_open}a plan{format_.before_close}{format_.close}{format_.resume}{format_.after_close}"


def turn_text(family: ModelFamily, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """The calls of a turn, with all that the family writes around them."""
    answer, syntax = family.answer, family.tool_calls
    before = answer.open + answer.close if answer and answer.leads_always else ""
    before += syntax.lead if syntax.always_leads else ""
    return before + spell_calls(syntax, calls) + (answer.turn_close if answer else "")


def test_what_the_family_writes_is_legal_and_read_back(
    family: ModelFamily, family_tokenizer: Tokenizers
) -> None:
    tokenizer = family_tokenizer(family)
    provider = create_provider("llguidance", tokenizer)
    thinkings: list[Thinking] = ["none"] if family.reasoning is None else ["optional", "closed"]
    for mode, thinking in itertools.product(("required", "auto"), thinkings):
        grammar = Grammar(spec_for(family, mode, thinking, TextFormat(), True), tokenizer, provider)
        for calls in CALLS:
            shown = calls[:1] if family.tool_calls.single else calls
            body = turn_text(family, shown)
            if thinking == "closed" and family.answer and family.answer.opened_by_prompt:
                body = body.removeprefix(family.answer.open)
            for before in {"", thinking_text(family) if thinking == "optional" else ""}:
                turn = Turn(family, grammar, thinking)
                for token_id in tokenizer.encode(before + body):
                    turn.push(token_id)
                assert turn.matcher.is_accepting
                turn.finish()
                assert turn.calls() == shown
                assert (turn.text(ReasoningDelta), turn.text()) == ("a plan" if before else "", "")


REQUESTS: Sequence[tuple[str, bool, OutputFormat, Thinking]] = (
    ("required", True, TextFormat(), "optional"),
    ("required", False, TextFormat(), "closed"),
    ("auto", True, TextFormat(), "open"),
    ("auto", True, JsonSchemaFormat(schema=json.dumps(ANSWER)), "optional"),
    ("none", True, JsonSchemaFormat(schema=json.dumps(ANSWER)), "open"),
    ("none", True, ChoiceFormat(choices=("\na", " b", "c")), "closed"),
)


def test_whatever_the_grammar_lets_through_keeps_the_contract(
    family: ModelFamily, family_tokenizer: Tokenizers
) -> None:
    tokenizer = family_tokenizer(family)
    provider = create_provider("llguidance", tokenizer)
    ended = 0
    for mode, parallel, output_format, asked in REQUESTS:
        thinking: Thinking = asked if family.reasoning else "none"
        grammar = Grammar(spec_for(family, mode, thinking, output_format, parallel), tokenizer, provider)
        for seed in range(3):
            turn = Turn(family, grammar, thinking)
            whole = turn.walk(random.Random(seed), limit=150)
            ended += whole
            for name, arguments in turn.calls():
                jsonschema.validate(arguments, SCHEMAS[name])
            if whole:
                check_end(turn, mode, parallel, output_format)
    assert ended


def check_end(turn: Turn, mode: str, parallel: bool, output_format: OutputFormat) -> None:
    calls = turn.calls()
    assert len([event for event in turn.events if isinstance(event, ToolCallStart)]) == len(calls)
    if mode == "required":
        assert calls
        assert not turn.text()
    if not parallel:
        assert len(calls) <= 1
    if not calls and isinstance(output_format, JsonSchemaFormat):
        jsonschema.validate(json.loads(turn.text()), json.loads(output_format.schema))
    if not calls and isinstance(output_format, ChoiceFormat):
        assert turn.text() in output_format.choices
