"""Answers made to keep a parser busy: linear in their length, by processor time with a wide margin."""

from __future__ import annotations

import time

import pytest

from interlock.core.events import TextDelta
from interlock.families.registry import by_name
from interlock.families.wire.parse import StreamParser


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("deepseek_r1", "<｜tool▁calls▁begin｜>" + 15_000 * "<｜tool▁sep｜>"),
        ("llama4", "[search(" + ", ".join(f"a{number}=1" for number in range(25_000))),
        ("qwen3", '<tool_call>\n{"name": "f", "arguments": {"a": ' + "[" * 120_000),
        ("llama4", '[f(a="' + "\\" * 120_000),
        ("gemma4", "<|tool_call>call:f{" + "a:{" * 40_000),
        (
            "minimax_m3",
            ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">' + "]<]minimax[>[<a>" * 30_000,
        ),
        ("qwen3_coder", "<tool_call>\n<function=f>\n" + "<parameter=a>\n</parameter" * 15_000),
        ("glm_4_7", "<tool_call>f<arg_key>" + "<" * 150_000),
        ("deepseek_v4", "<｜DSML｜tool_calls>\n" + "\n" * 150_000),
    ],
)
@pytest.mark.parametrize("size", [11, 10**6])
def test_hostile_answers_take_linear_time(family: str, text: str, size: int) -> None:
    declared = by_name(family)
    parser = StreamParser(declared, special_tokens=None, thinking="none", tools="hide")
    start = time.process_time()
    for at in range(0, len(text), size):
        parser.push_text(text[at : at + size])
    parser.finish(truncated=True)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("family", ["deepseek_r1", "deepseek_v3_1"])
@pytest.mark.parametrize("size", [11, 10**6])
def test_separators_without_a_call_are_text_and_no_call(family: str, size: int) -> None:
    parser = StreamParser(by_name(family), special_tokens=None, thinking="none", tools="parse")
    separators = 1_000 * "<｜tool▁sep｜>"
    text = f"<｜tool▁calls▁begin｜>{separators}"
    events = [event for at in range(0, len(text), size) for event in parser.push_text(text[at : at + size])]
    events += parser.finish(truncated=True)
    assert {type(event) for event in events} == {TextDelta}
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == separators
