from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.core.messages import Message
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families import generic, qwen3
from interlock.families.registry import FAMILIES, by_name, choose
from interlock.families.wire.render import PromptRenderer
from interlock.families.wire.spell import spell_calls
from interlock.tokenization.description import ModelDescription
from interlock.tokenization.load import describe as describe_model

Describe = Callable[..., ModelDescription]
Templates = Callable[[str], str]


@pytest.mark.parametrize("name", ["qwen3", "qwen", "hermes", "Qwen2.5", "qwen3_json", " qwen_3 "])
def test_aliases_name_the_family(name: str) -> None:
    assert by_name(name) is qwen3.FAMILY


XGRAMMAR = """kimi deepseek_r1 deepseek_v3_1 deepseek_v3_2 deepseek_v4 deepseek_v4_1 qwen_3 qwen_3_5 qwen_3_coder mimo
    llama gemma_4 harmony minimax minimax_m3 glm_4_7 cohere exaone kimi_k3"""
VLLM = """deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 deepseek_v41 gemma4 glm45 glm47 granite4 hermes hy_v3 hy_v4
    internlm kimi_k2 kimi_k3 llama3_json llama4_json llama4_pythonic mimo minimax_m2 minimax_m3 mistral muse
    phi4_mini_json qwen3_coder qwen3_json qwen3_xml seed_oss cohere_cmd step3p5 nemotron_v3 granite granite-20b-fc
    functiongemma longcat olmo3 pythonic xlam jamba step3 openai gigachat3 k2_horizon dots lfm2 apertus"""


@pytest.mark.parametrize("name", [*XGRAMMAR.split(), *VLLM.split()])
def test_names_of_other_systems_are_known(name: str) -> None:
    assert by_name(name) in FAMILIES


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InterlockError, match="qwen3, qwen3_coder") as caught:
        by_name("gpt2")
    assert caught.value.code == "invalid_value"


def test_names_are_unique_and_every_file_is_in_the_catalog(root: Path) -> None:
    names = [name for family in FAMILIES for name in (family.name, *family.aliases)]
    assert len(names) == len(set(names))
    files = {path.stem for path in (root / "src/interlock/families").glob("*.py")}
    others = {"__init__", "base", "catalog", "check", "derive", "differences", "dsml", "registry", "table"}
    assert len(files - others) == len(FAMILIES)


CHOICES = {
    "Apertus-8B-Instruct": "apertus",
    "Bielik-11B-v3.0-Instruct": "qwen3",
    "ByteDance-Seed-OSS": "seed_oss",
    "Cohere2MoE": "cohere_command",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere_command",
    "GLM-4.6": "glm_4_5",
    "GLM-4.7-Flash": "glm_4_7",
    "GigaChat3.1-10B-A1.8B": "gigachat3_1",
    "GigaChat3-10B-A1.8B": "gigachat3_1",
    "Kimi-K2-Thinking": "kimi_k2",
    "Kimi-K3": "kimi_k3",
    "LFM2.5-8B-A1B": "lfm2",
    "MiniMax-M1": "minimax_m1",
    "MiniMax-M2": "minimax_m2",
    "MiniMax-M3": "minimax_m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_v11",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3_coder",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_v2",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "qwen3",
    "Qwen-QwQ-32B": "qwen3",
    "Qwen-Qwen2.5-7B-Instruct": "qwen3",
    "Qwen-Qwen3-0.6B": "qwen3",
    "Qwen3-Coder": "qwen3_coder",
    "Qwen3.5-4B": "qwen3_coder",
    "StepFun3.5-Flash": "qwen3_coder",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek_r1",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v3_1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek_v3_2",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4",
    "google-gemma-4-31B-it": "gemma4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite3",
    "meetkai-functionary-medium-v3.1": "functionary_v3_1",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral_v13",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v3",
    "moonshotai-Kimi-K2": "kimi_k2",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "openbmb-MiniCPM5-1B": "minicpm5",
    "tencent-Hy3": "hy_v4",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral_v13",
    "upstage-Solar-Open-100B": "solar_open",
    "google-gemma-2-2b-it": "generic",
    "microsoft-Phi-3.5-mini-instruct": "generic",
}


@pytest.mark.parametrize("template", CHOICES)
def test_the_family_is_the_one_whose_calls_the_template_writes(
    template: str, templates: Templates, describe: Describe
) -> None:
    choice = choose(describe(templates(template), bos_token="<bos>"))
    assert choice.family.name == CHOICES[template]
    assert "template" in choice.reason


def test_an_unknown_envelope_is_read_off_the_template(describe: Describe) -> None:
    template = """{%- for message in messages %}{{ message.role }}: {{ message.content }}
{% for call in message.tool_calls or [] -%}
<call:json>
{{ {"name": call.function.name, "parameters": call.function.arguments} | tojson }}
</call:json>
{% endfor %}{% endfor %}{{ tools | tojson }}"""
    choice = choose(describe(template))
    assert "read off" in choice.reason
    spelt = spell_calls(choice.family.tool_calls, [("f", {"a": 1})])
    assert spelt == '<call:json>\n{"name": "f", "parameters": {"a": 1}}\n</call:json>'


def test_the_architecture_decides_where_the_template_shows_no_calls(describe: Describe, chatml: str) -> None:
    template = "{% if tools %}{{ tools | tojson }}{% endif %}" + chatml
    choice = choose(replace(describe(template), architecture="lfm2"))
    assert (choice.family.name, choice.reason) == ("lfm2", "the model's architecture is lfm2")
    assert choose(describe(template)).family is generic.FAMILY


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
