"""Thinking on, off and how much, told to real chat templates in the words that each knows."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families.registry import choose
from interlock.families.wire.render import PromptRenderer, RenderedPrompt
from interlock.tokenization.description import ModelDescription

Render = Callable[..., RenderedPrompt]

TOOLS = (Tool(name="f", description="a tool"),)
USER = Message(role="user", content="hi")
CALL = ToolCall(id="call_1", name="f", arguments='{"a": 1}')
LOOP = (
    USER,
    Message(role="assistant", reasoning="WHY", tool_calls=(CALL,)),
    Message(role="tool", content="a result", tool_call_id="call_1"),
)
HISTORY = (
    USER,
    Message(role="assistant", reasoning="WHY", content="an answer"),
    Message(role="user", content="more"),
)


@pytest.fixture(scope="module")
def render(
    describe: Callable[..., ModelDescription], templates: Callable[[str], str]
) -> Callable[..., RenderedPrompt]:
    @functools.cache
    def renderer(name: str) -> PromptRenderer:
        description = describe(templates(name))
        return PromptRenderer(choose(description).family, description)

    def make(name: str, messages: tuple[Message, ...] = (USER,), **options: object) -> RenderedPrompt:
        return renderer(name).render(messages, TOOLS, ReasoningOptions(**options))  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize(
    "name",
    [
        "Apertus-8B-Instruct",
        "ByteDance-Seed-OSS",
        "Cohere2MoE",
        "Kimi-K3",
        "MiniMax-M3",
        "deepseek-ai-DeepSeek-V3.1",
        "deepseek-ai-DeepSeek-V4",
        "google-gemma-4-31B-it",
        "ibm-granite-granite-3.3-2B-Instruct",
        "Qwen3.5-4B",
        "tencent-Hy3",
        "upstage-Solar-Open-100B",
    ],
)
def test_thinking_can_be_switched_off_and_on_also_behind_a_tools_result(render: Render, name: str) -> None:
    for messages in ((USER,), LOOP):
        assert render(name, messages, enabled=False).thinking == "closed"
        assert render(name, messages, enabled=True).thinking in ("open", "optional")


@pytest.mark.parametrize("name", ["Kimi-K2-Thinking", "MiniMax-M2", "openai-gpt-oss-120b"])
def test_a_model_that_always_thinks_refuses_to_stop(render: Render, name: str) -> None:
    with pytest.raises(InterlockError, match="cannot switch thinking off"):
        render(name, enabled=False)


@pytest.mark.parametrize(
    ("name", "effort", "told"),
    [
        ("openai-gpt-oss-120b", "minimal", "Reasoning: low\n"),
        ("openai-gpt-oss-120b", "medium", "Reasoning: medium\n"),
        ("openai-gpt-oss-120b", "xhigh", "Reasoning: high\n"),
        ("openai-gpt-oss-120b", "max", "Reasoning: high\n"),
        ("Kimi-K3", "minimal", "`thinking_effort=low`"),
        ("Kimi-K3", "medium", "`thinking_effort=high`"),
        ("Kimi-K3", "xhigh", "`thinking_effort=max`"),
        ("deepseek-ai-DeepSeek-V4", "xhigh", "Reasoning Effort: Absolute maximum"),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", "high", "Reasoning Effort: Absolute maximum"),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", "xhigh", "Reasoning Effort: Beyond maximum"),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", "max", "Reasoning Effort: Beyond maximum"),
        ("tencent-Hy3", "medium", "reasoning_effort:high"),
        ("tencent-Hy3", "minimal", "reasoning_effort:low"),
    ],
)
def test_an_effort_is_told_in_the_models_own_words(render: Render, name: str, effort: str, told: str) -> None:
    prompt = render(name, enabled=True, effort=effort)
    assert told in prompt.text
    assert all(f"reasoning_effort {effort} is told" in note for note in prompt.notes)


@pytest.mark.parametrize(("effort", "notes"), [("medium", 0), ("minimal", 1), ("max", 1)])
def test_another_word_is_reported(render: Render, effort: str, notes: int) -> None:
    assert len(render("openai-gpt-oss-120b", effort=effort).notes) == notes


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_less_effort_than_the_model_has_a_word_for_says_nothing(render: Render, effort: str) -> None:
    assert "Reasoning Effort" not in render("deepseek-ai-DeepSeek-V4", enabled=True, effort=effort).text


def test_a_template_without_efforts_is_reported(render: Render) -> None:
    (note,) = render("Qwen-Qwen3-0.6B", enabled=True, effort="low").notes
    assert "reasoning_effort" in note
    assert render("Qwen-Qwen3-0.6B", enabled=True).notes == ()


def test_a_budget_is_told_where_the_model_knows_one(render: Render) -> None:
    assert "thinking budget, which is 512" in render("ByteDance-Seed-OSS", budget=512).text


@pytest.mark.parametrize(
    ("name", "in_loop", "in_history"),
    [
        ("deepseek-ai-DeepSeek-V3.1", 0, 0),
        ("deepseek-ai-DeepSeek-V3.2", 1, 0),
        ("Kimi-K2-Instruct", 0, 0),
        ("moonshotai-Kimi-K2", 0, 0),
        ("Kimi-K2-Thinking", 1, 0),
        ("Qwen-Qwen3-0.6B", 1, 0),
        ("openai-gpt-oss-120b", 1, 0),
    ],
)
def test_an_earlier_thought_is_repeated_only_where_the_template_repeats_it(
    render: Render, name: str, in_loop: int, in_history: int
) -> None:
    enabled = True if "DeepSeek" in name else None
    assert render(name, LOOP, enabled=enabled).text.count("WHY") == in_loop
    assert render(name, HISTORY, enabled=enabled).text.count("WHY") == in_history


def test_calls_that_a_template_leaves_out_are_written_as_text(
    describe: Callable[..., ModelDescription], templates: Callable[[str], str]
) -> None:
    description = describe(templates("LFM2-8B-A1B"), architecture="lfm2moe")
    choice = choose(description)
    text = PromptRenderer(choice.family, description).render(LOOP, TOOLS).text
    assert choice.family.name == "lfm2"
    assert "<|tool_call_start|>[f(a=1)]<|tool_call_end|><|im_end|>" in text
    assert "<|tool_response_start|>a result<|tool_response_end|>" in text
