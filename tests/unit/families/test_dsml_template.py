"""DeepSeek's own template where there is one agrees with ours, on everything that both can say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool
from interlock.families import deepseek_v4, deepseek_v4_1
from interlock.families.registry import choose
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.description import ModelDescription

Describe = Callable[..., ModelDescription]

TOOLS = (
    Tool(name="run", description="It's a tool", parameters='{"type": "object", "properties": {"a": {}}}'),
    Tool(name="now"),
)
CALLS = (
    ToolCall(id="a", name="run", arguments='{"a": "x <b>", "n": 1.0, "o": {"k": null}}'),
    ToolCall(id="b", name="now", arguments="{}"),
)
CONVERSATIONS: tuple[tuple[Message, ...], ...] = (
    (Message(role="user", content="Hi"),),
    (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Hi"),
        Message(role="user", content="there"),
    ),
    (
        Message(role="system", content="One."),
        Message(role="user", content="Hi"),
        Message(role="assistant", content="Hello", reasoning="hm"),
        Message(role="system", content="Two."),
        Message(role="user", content="Run it"),
        Message(role="assistant", content="So:", reasoning="now", tool_calls=CALLS),
        Message(role="tool", content="done", tool_call_id="a"),
        Message(role="tool", content="noon", tool_call_id="b"),
    ),
    (
        Message(role="user", content="Hi"),
        Message(role="assistant", content="Hello", reasoning="hm"),
        Message(role="user", content="x"),
    ),
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"reasoning": ReasoningOptions(enabled=True)},
    {"reasoning": ReasoningOptions(enabled=False)},
    {"reasoning": ReasoningOptions(enabled=True, effort="max")},
)


@pytest.mark.parametrize(
    ("messages", "tools", "options"),
    list(itertools.product(CONVERSATIONS, ((), TOOLS), OPTIONS)),
    ids=lambda _: "",
)
def test_both_templates_give_the_same_prompt(
    messages: tuple[Message, ...],
    tools: tuple[Tool, ...],
    options: dict[str, Any],
    templates: Callable[[str], str],
    describe: Describe,
) -> None:
    theirs = describe(templates("deepseek-ai-DeepSeek-V4"), bos_token="<｜begin▁of▁sentence｜>")
    ours = replace(theirs, chat_template=None)
    prompts = [
        PromptRenderer(deepseek_v4.FAMILY, model).render(messages, tools, **options) for model in (theirs, ours)
    ]
    assert prompts[0] == prompts[1]


def test_a_model_without_template_is_known_by_its_architecture(describe: Describe) -> None:
    choice = choose(replace(describe(None), architecture="deepseek_v41"))
    assert choice.family is deepseek_v4_1.FAMILY
    text = PromptRenderer(choice.family, describe(None)).render(CONVERSATIONS[2], TOOLS).text
    assert (
        '<｜DSML｜ calls>\n<｜DSML｜ invoke name="run">\n<｜DSML｜ parameter name="a" string="true">x <b></｜DSML｜ '
        in text
    )
