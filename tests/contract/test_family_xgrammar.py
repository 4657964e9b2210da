"""xgrammar's built-in structural tags take the calls that we write, but for the differences that the docs list."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.families.registry import by_name
from interlock.families.wire.spell import spell_calls

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
    from xgrammar.builtin_structural_tag import get_model_structural_tag

    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    tag = get_model_structural_tag(
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
