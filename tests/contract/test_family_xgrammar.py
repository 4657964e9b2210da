"""xgrammar's built-in structural tags take the calls that we write, and our parser reads the calls that they allow,
but for the differences that the docs list."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.argument_syntax import BareKeyArguments, NestedTagArguments, TaggedArguments
from interlock.core.events import TextDelta, ToolCallArguments, ToolCallEnd
from interlock.core.tools import Tool
from interlock.families.registry import by_name
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls

xgr = pytest.importorskip("xgrammar", reason="xgrammar is an optional engine")
builtin = pytest.importorskip("xgrammar.builtin_structural_tag")

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
# What a turn without thinking has around its calls.
AROUND = {
    "kimi_k3": ("<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    "minimax": ("\n</think>\n\n\n\n\n", ""),
    "harmony": ("", "<|call|>"),
}
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
STOP = 256


@cache
def theirs(name: str) -> Any:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    tag = builtin.get_model_structural_tag(
        name,
        tools=tools,
        tool_choice="required",
        reasoning="disabled",
        parallel_tool_calls=False,
        max_whitespace_cnt=1,
    )
    tokens = [bytes([byte]) for byte in range(256)] + [b"<|im_end|>"]
    info = xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, stop_token_ids=[STOP])
    return xgr.GrammarCompiler(info, max_threads=1).compile_structural_tag(tag)


def accepts(name: str, arguments: dict[str, Any]) -> bool:
    syntax = by_name(name).tool_calls
    before, after = AROUND.get(name, ("", ""))
    lead = syntax.lead if syntax.always_leads else ""
    matcher = xgr.GrammarMatcher(theirs(name))
    text = before + lead + spell_calls(syntax, [("get_weather", arguments)]) + after
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.accept_token(STOP)


TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="<>|[]"), max_size=8)
ARGUMENTS = st.fixed_dictionaries(
    {"city": TEXT}, optional={"days": st.integers(-99, 99), "exact": st.booleans()}
)
NESTED = {"city": "Oslo", "tags": ["x", ""], "place": {"unit": "km"}}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "harmony"])
@settings(max_examples=6, derandomize=True, deadline=None)
@given(arguments=ARGUMENTS)
def test_calls_as_we_write_them_are_accepted(name: str, arguments: dict[str, Any]) -> None:
    declared = {key: arguments[key] for key in SCHEMA["properties"] if key in arguments}
    assert accepts(name, declared)


@pytest.mark.parametrize("name", NAMES)
def test_nested_values_are_accepted_where_the_form_is_the_same(name: str) -> None:
    assert accepts(name, NESTED) == (name not in {"harmony", "cohere"})


def closers(name: str) -> list[bytes]:
    """What ends a value: random walks hardly ever find it."""
    match by_name(name).tool_calls.arguments:
        case TaggedArguments(value_close=close):
            found = [close.strip()]
        case BareKeyArguments(quote=quote):
            found = [quote]
        case NestedTagArguments(mark=mark, item=item):
            found = [f"{mark}</{key}>" for key in (*SCHEMA["properties"], "unit", item)]
        case _:
            found = []
    return [text.encode() for text in (*found, *AROUND.get(name, ("",))[:1]) if text]


def walk(name: str, chance: random.Random) -> str | None:
    """A turn that the tag allows; ``None`` if it did not end in time."""
    matcher = xgr.GrammarMatcher(theirs(name))
    row = xgr.allocate_token_bitmask(1, STOP + 1)
    out = bytearray()
    for _ in range(1500):
        closer = chance.choice([*closers(name), b""])
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
