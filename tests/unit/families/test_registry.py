from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.core.messages import Message
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families import generic, qwen3
from interlock.families.base import Mark
from interlock.families.registry import FAMILIES, by_name, choose
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.load import describe as describe_model

Describe = Callable[..., ModelDescription]
Templates = Callable[[str], str]


@pytest.mark.parametrize("name", ["qwen3", "qwen", "hermes", "Qwen2.5", "qwen3_json", " qwen_3 "])
def test_aliases_name_the_family(name: str) -> None:
    assert by_name(name) is qwen3.FAMILY


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InterlockError, match="qwen3, generic") as caught:
        by_name("gpt2")
    assert caught.value.code == "invalid_value"


def test_names_are_unique_and_markers_do_not_begin_each_other() -> None:
    names = [name for family in FAMILIES for name in (family.name, *family.aliases)]
    assert len(names) == len(set(names))
    for family in FAMILIES:
        marks = {piece.text for piece in family.tool_calls.call if isinstance(piece, Mark)}
        if family.reasoning:
            marks |= {family.reasoning.open, family.reasoning.close}
        assert not [(a, b) for a in marks for b in marks if a != b and b.startswith(a)]


@pytest.mark.parametrize(
    ("template", "family", "reason"),
    [
        ("Qwen-Qwen3-0.6B", qwen3.FAMILY, "<tool_call>"),
        ("Qwen-Qwen2.5-7B-Instruct", qwen3.FAMILY, "<tool_call>"),
        ("Qwen-QwQ-32B", qwen3.FAMILY, "<tool_call>"),
        ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", qwen3.FAMILY, "<tool_call>"),
        ("Qwen3-Coder", generic.FAMILY, "no family here"),
        ("GLM-4.6", generic.FAMILY, "no family here"),
        ("google-gemma-2-2b-it", generic.FAMILY, "shows no tools"),
    ],
)
def test_the_family_is_the_one_whose_calls_the_template_writes(
    template: str, family: object, reason: str, templates: Templates, describe: Describe
) -> None:
    choice = choose(describe(templates(template), bos_token="<bos>"))
    assert choice.family is family
    assert reason in choice.reason


def test_a_model_without_template_is_generic(describe: Describe) -> None:
    assert choose(describe(None)).family is generic.FAMILY


@pytest.mark.model
def test_the_demo_model_is_told_its_tools_by_a_system_prompt(demo_model: Path) -> None:
    description = describe_model(demo_model)
    choice = choose(description)
    assert choice.family is generic.FAMILY
    prompt = PromptRenderer(choice.family, description).render(
        [Message(role="user", content="Weather in Oslo? <|im_end|>")], (Tool(name="get_weather"),)
    )
    assert prompt.thinking == "none"
    assert '{"type": "function", "function": {"name": "get_weather", "parameters": ' in prompt.text
    ends = description.tokenizer.special_tokens["<|im_end|>"]
    assert prompt.ids.count(ends) == 2  # system and user, none of the client's
    assert description.tokenizer.decode(prompt.ids) == prompt.text
