"""Our grammars and xgrammar's built-in structural tags allow the same calls, and our parser reads the calls that the tags
allow, but for the differences that the docs list."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from interlock.core.argument_syntax import BareKeyArguments, NestedTagArguments, TaggedArguments
from interlock.core.events import TextDelta, ToolCallArguments, ToolCallEnd
from interlock.core.tools import Tool
from interlock.families.base import ModelFamily
from interlock.families.differences import DIFFERENCES, RESPELLINGS
from interlock.families.registry import by_name
from interlock.families.wire.parse import StreamParser
from tests.contract.grammar_pair import MARK, STOP, Findings, Pair, grammar, tag

xgr = pytest.importorskip("xgrammar", reason="xgrammar is an optional engine")

NAMES = [
    "llama",
    "kimi",
    "kimi_k3",
    "deepseek_r1",
    "deepseek_v3_1",
    "qwen_3_5",
    "qwen_3_coder",
    "mimo",
    "qwen_3",
    "harmony",
    "deepseek_v3_2",
    "minimax",
    "minimax_m3",
    "glm_4_7",
    "gemma_4",
    "deepseek_v4",
    "deepseek_v4_1",
    "cohere",
    "exaone",
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "exact": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {
            "type": "object",
            "properties": {"unit": {"enum": ["km", "mi"]}},
            "required": ["unit"],
            "additionalProperties": False,
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMAS = json.dumps({"get_weather": SCHEMA, "note": NOTHING})
SEEDS = 14


def follow(pair: Pair, family: ModelFamily, chance: random.Random) -> bool:
    """Random legal text; true if the turn ended."""
    phrases = [*closers(family.name), *family.tool_calls.openers, '"\\u00', "\\", "é"]
    for _ in range(250):
        both = pair.step()
        legal = sorted(both - {STOP})
        if STOP in both and (not legal or chance.random() < 0.3):
            return True
        if not legal:
            return False
        if chance.random() < 0.3 and pair.push(chance.choice(phrases).encode()):
            continue
        plain = [byte for byte in legal if 32 <= byte < 127 or byte == 10] or legal
        structure = [byte for byte in plain if byte in b'"}]</>,:[{=\n']
        byte = chance.choice(structure if structure and chance.random() < 0.4 else plain)
        if not pair.push(bytes([byte])):  # the first byte of a marker that is one token here
            assert pair.push(MARK)
    return False


@pytest.mark.parametrize("name", NAMES)
def test_grammar_and_tag_differ_where_the_docs_say_and_nowhere_else(name: str) -> None:
    family, findings, ended = by_name(name), Findings(), 0
    for parallel in (False, True):
        ours, theirs = grammar(family, SCHEMAS, parallel=parallel), tag(name, SCHEMAS, parallel=parallel)
        for seed in range(SEEDS):
            ended += follow(Pair(family, ours, theirs, findings), family, random.Random(seed))
    assert not findings.others
    assert ended
    listed = {kind for kind in (*DIFFERENCES, *RESPELLINGS) if family.name in kind.families}
    assert findings.listed == listed, "a difference that the docs list is no more"


def closers(name: str) -> list[str]:
    """What ends a value: random walks hardly ever find it."""
    match by_name(name).tool_calls.arguments:
        case TaggedArguments(value_close=close):
            found = [close.strip(), close]
        case BareKeyArguments(quote=quote):
            found = [quote]
        case NestedTagArguments(mark=mark, item=item):
            found = [f"{mark}</{key}>" for key in (*SCHEMA["properties"], "unit", item)]
        case _:
            found = []
    if name == "kimi_k3":  # its tag allows any answer before the calls
        found.append("<|close|>response<|sep|>")
    return found


def walk(name: str, chance: random.Random) -> str | None:
    """A turn that the tag allows; ``None`` if it did not end in time."""
    matcher = xgr.GrammarMatcher(tag(name, json.dumps({"get_weather": SCHEMA}), parallel=False))
    row = xgr.allocate_token_bitmask(1, STOP + 1)
    out = bytearray()
    for _ in range(1500):
        closer = chance.choice([*closers(name), ""]).encode()
        if closer and chance.random() < 0.3 and matcher.accept_string(closer):
            out += closer
            continue
        matcher.fill_next_token_bitmask(row)
        bits = np.unpackbits(row.numpy().view(np.uint8)[0], bitorder="little")
        allowed = [int(byte) for byte in np.flatnonzero(bits[: STOP + 1])]
        if STOP in allowed and (out or allowed == [STOP]):
            return out.decode()
        plain = [byte for byte in allowed if 32 < byte < 127] or allowed
        structure = [byte for byte in plain if byte in b'"}]</>']
        byte = chance.choice(structure if structure and chance.random() < 0.4 else plain)
        assert matcher.accept_token(byte)
        out.append(byte)
    return None


@pytest.mark.parametrize("name", NAMES)
def test_calls_as_the_tags_allow_them_are_read(name: str) -> None:
    tool = Tool(name="get_weather", parameters=json.dumps(SCHEMA))
    thinking: Any = "open" if name == "minimax" else "none"  # its tag writes the end of thinking
    turns = [turn for seed in range(8) if (turn := walk(name, random.Random(seed))) is not None]
    assert turns
    for turn in turns:
        parser = StreamParser(
            by_name(name), special_tokens=None, thinking=thinking, tools="parse", declared=(tool,)
        )
        events = [*parser.push_text(turn), *parser.finish(truncated=False)]
        arguments = "".join(event.text for event in events if isinstance(event, ToolCallArguments))
        assert sum(isinstance(event, ToolCallEnd) for event in events) == 1, turn
        jsonschema.validate(json.loads(arguments), SCHEMA)
        if name != "kimi_k3":  # its tag allows an answer before the call
            assert not any(isinstance(event, TextDelta) for event in events)
