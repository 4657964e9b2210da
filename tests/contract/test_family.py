"""What every family promises: render, grammar and parser agree, over any vocabulary.

What the family spells is accepted by its grammar, and whatever its grammar lets through is read by its parser
without an error and keeps the contract of the request.
"""

from __future__ import annotations

import codecs
import json
import lzma
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from interlock.constraints.bitmask import num_words
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Matcher, Provider
from interlock.constraints.providers.registry import create_provider
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
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.hf import hf_tokenizer

VOCABULARIES = {
    "markers are tokens": byte_tokenizer(),
    "markers are text": byte_tokenizer(("<|im_start|>", "<|im_end|>")),
}
WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Oslo", "Århus", "</tool_call>"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["city"],
}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 6},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
}
SCHEMAS = {"get_weather": WEATHER, "note-2": NOTE}
TOOLS = tuple(Tool(name=name, parameters=json.dumps(schema)) for name, schema in SCHEMAS.items())
ANSWER: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}

CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "one": [("get_weather", {"city": "Oslo"})],
    "marker in a value": [("get_weather", {"city": "</tool_call>", "days": 0})],
    "parallel": [
        ("note-2", {}),
        ("note-2", {"text": 'a"\n', "tags": [True, False]}),
        ("get_weather", {"city": "Oslo"}),
    ],
}


@pytest.fixture(params=VOCABULARIES, scope="module")
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return VOCABULARIES[request.param]


@pytest.fixture(scope="module")
def provider(tokenizer: Tokenizer) -> Provider:
    return create_provider("llguidance", tokenizer)


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> ModelFamily:
    found: ModelFamily = request.param
    return found


class Turn:
    """A turn of one request, fed token by token to matcher and parser."""

    def __init__(
        self,
        family: ModelFamily,
        tokenizer: Tokenizer,
        provider: Provider,
        *,
        mode: Any = "auto",
        parallel: bool = True,
        output_format: OutputFormat = TextFormat(),  # noqa: B008
        thinking: Thinking = "none",
    ) -> None:
        tools = TOOLS if mode != "none" else ()
        context = ToolContext(
            effective_tools=tools,
            callable_tools=tools,
            tool_choice=ToolChoice(mode=mode),
            parallel_tool_calls=parallel,
            constrained=bool(tools),
        )
        spec = constrain(family, tools=context, output_format=output_format, thinking=thinking)
        assert spec is not None
        self.matcher: Matcher = provider.compile(lower(spec, tokenizer.special_tokens).grammar).matcher()
        self._tokenizer = tokenizer
        self._vocabulary = tokenizer.vocabulary
        self._markers = [family.tool_calls.opener]
        if family.reasoning is not None:
            self._markers += [family.reasoning.close, family.reasoning.close]
        self._spelling = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
        self._parser = StreamParser(
            family, special_tokens=self._spelling, thinking=thinking, tools="parse" if tools else "ignore"
        )
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._row = np.zeros(num_words(self._vocabulary.size), np.int32)
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

    def walk(self, chance: random.Random, limit: int) -> bool:
        """Random legal tokens; true if the turn ended by itself."""
        for _ in range(limit):
            allowed = self.allowed()
            stops = [token_id for token_id in allowed if token_id in self._vocabulary.stop_ids]
            if stops and (len(stops) == len(allowed) or chance.random() < 0.3):
                self.events += self._parser.finish(truncated=False)
                return True
            if chance.random() < 0.1 and self._push_marker(chance):
                continue
            legal = [token_id for token_id in allowed if token_id not in stops]
            # strings, thoughts and lists end some day
            closing = [token_id for token_id in legal if token_id >= 256 or token_id in b'"}]<']
            self.push(chance.choice(closing if closing and chance.random() < 0.4 else legal))
        self.events += self._parser.finish(truncated=True)
        return False

    def _push_marker(self, chance: random.Random) -> bool:
        """A marker, where it is legal: chance alone seldom spells one."""
        ids = self._tokenizer.encode(chance.choice(self._markers))
        if self.matcher.validate(ids) < len(ids):
            return False
        for token_id in ids:
            self.push(token_id)
        return True

    def calls(self) -> list[tuple[str, str]]:
        starts = [event for event in self.events if isinstance(event, ToolCallStart)]
        ends = [event.index for event in self.events if isinstance(event, ToolCallEnd)]
        assert ends == list(range(len(starts)))[: len(ends)]
        arguments = ["" for _ in starts]
        for event in self.events:
            if isinstance(event, ToolCallArguments):
                arguments[event.index] += event.text
        return [(start.name, arguments[start.index]) for start in starts[: len(ends)]]

    def text(self, kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
        return "".join(event.text for event in self.events if isinstance(event, kind))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("mode", "thinking", "before", "reasoning", "content"),
    [
        ("required", "none", "", "", ""),
        ("required", "closed", "", "", ""),
        ("required", "open", "a plan\n</think>\n\n", "a plan", ""),
        ("required", "optional", "<think>\na plan\n</think>\n\n", "a plan", ""),
        ("required", "optional", "", "", ""),
        ("auto", "none", "Let me see <b>.\n", "", "Let me see <b>."),
        ("auto", "none", "", "", ""),
        ("auto", "optional", "<think>\n\n</think>\n\nOk\n", "", "Ok"),
        ("auto", "open", "x</think>\n\n", "x", ""),
    ],
)
def test_what_the_family_writes_is_legal_and_read_back(
    family: ModelFamily,
    tokenizer: Tokenizer,
    provider: Provider,
    name: str,
    mode: Any,
    thinking: Thinking,
    before: str,
    reasoning: str,
    content: str,
) -> None:
    turn = Turn(family, tokenizer, provider, mode=mode, thinking=thinking)
    # The marker inside a value is spelt with ordinary tokens, as a model may well do.
    spelt = spell_calls(family.tool_calls, CALLS[name])
    head, inside, tail = spelt.partition('"</tool_call>"')
    ids = tokenizer.encode(before + head) + tokenizer.encode_text(inside) + tokenizer.encode(tail)
    for token_id in ids:
        turn.push(token_id)
    assert turn.matcher.is_accepting
    turn.events += turn._parser.finish(truncated=False)
    assert [(called, json.loads(arguments)) for called, arguments in turn.calls()] == CALLS[name]
    assert (turn.text(ReasoningDelta), turn.text()) == (reasoning, content)


REQUESTS: Sequence[dict[str, Any]] = (
    {"mode": "required"},
    {"mode": "required", "parallel": False, "thinking": "optional"},
    {"mode": "auto", "thinking": "open"},
    {"mode": "auto", "output_format": JsonSchemaFormat(schema=json.dumps(ANSWER)), "thinking": "optional"},
    {"mode": "none", "output_format": JsonSchemaFormat(schema=json.dumps(ANSWER)), "thinking": "open"},
    {"mode": "none", "output_format": ChoiceFormat(choices=("\na", " b", "c")), "thinking": "optional"},
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request_: "-".join(map(str, request_.values()))[:40])
def test_whatever_the_grammar_lets_through_keeps_the_contract(
    family: ModelFamily, tokenizer: Tokenizer, provider: Provider, request_: dict[str, Any]
) -> None:
    ended = 0
    for seed in range(12):
        turn = Turn(family, tokenizer, provider, **request_)
        whole = turn.walk(random.Random(seed), limit=300)
        ended += whole
        calls = turn.calls()
        for name, arguments in calls:
            jsonschema.validate(json.loads(arguments), SCHEMAS[name])
        if whole:
            check_end(turn, calls, request_)
    assert ended


def check_end(turn: Turn, calls: list[tuple[str, str]], request: dict[str, Any]) -> None:
    starts = [event for event in turn.events if isinstance(event, ToolCallStart)]
    assert len(starts) == len(calls)
    if request["mode"] == "required":
        assert calls
        assert not turn.text()
    if not request.get("parallel", True):
        assert len(calls) == 1
    match request.get("output_format"):
        case JsonSchemaFormat(schema=schema) if not calls:
            jsonschema.validate(json.loads(turn.text()), json.loads(schema))
        case ChoiceFormat(choices=choices):
            assert turn.text() in choices


@pytest.fixture(scope="module")
def qwen3(shared: Path) -> tuple[Tokenizer, Provider]:
    packed = (shared / "data/tokenizers/qwen3/tokenizer.json.xz").read_bytes()
    tokenizer = hf_tokenizer(lzma.decompress(packed).decode(), turn_ends=["<|im_end|>"])
    return tokenizer, create_provider("llguidance", tokenizer)


@pytest.mark.parametrize(
    ("mode", "before"),
    [("required", "<think>\na plan\n</think>\n\n"), ("required", ""), ("auto", "Let me see.\n")],
)
def test_the_natural_tokens_of_a_real_vocabulary_are_legal(
    family: ModelFamily, qwen3: tuple[Tokenizer, Provider], mode: Any, before: str
) -> None:
    tokenizer, provider = qwen3
    for name in ("one", "parallel"):
        turn = Turn(family, tokenizer, provider, mode=mode, thinking="optional")
        for token_id in tokenizer.encode(before + spell_calls(family.tool_calls, CALLS[name])):
            turn.push(token_id)
        assert turn.matcher.is_accepting
        assert [(called, json.loads(arguments)) for called, arguments in turn.calls()] == CALLS[name]
