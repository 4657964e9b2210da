from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool
from interlock.errors import InterlockError
from interlock.families import kimi_k2, mistral_v13, qwen3_coder
from interlock.families.registry import choose
from interlock.families.wire import json_text
from interlock.families.wire.history import check_reserved, native_ids, one_call_a_message
from interlock.families.wire.render import PromptRenderer
from interlock.families.wire.spell import spell_call
from interlock.tokenization.description import ModelDescription

Describe = Callable[..., ModelDescription]
Templates = Callable[[str], str]

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = (
    Tool(name="get_weather", description="Weather", parameters=json.dumps(PARAMETERS)),
    Tool(name="now", description="Time"),
)
CALLS = (
    ToolCall(id="call_one", name="get_weather", arguments='{"city": "Århus b", "days": 3}'),
    ToolCall(id="call_two", name="now", arguments='{"zone": "x"}'),
)
CONVERSATION = (
    Message(role="user", content="Weather?"),
    Message(role="assistant", tool_calls=CALLS),
    Message(role="tool", content="rain", tool_call_id="call_one"),
    Message(role="tool", content="noon", tool_call_id="call_two"),
)
NATIVE = """Apertus-8B-Instruct Bielik-11B-v3.0-Instruct Cohere2MoE CohereForAI-c4ai-command-r7b-12-2024-tool_use
    GLM-4.6 GLM-4.7-Flash Kimi-K2-Instruct Kimi-K2-Thinking Kimi-K3 LFM2.5-8B-A1B MiniMax-M1 MiniMax-M2 MiniMax-M3
    Mistral-Small-3.2-24B-Instruct-2506 NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 NVIDIA-Nemotron-Nano-v2 Qwen-QwQ-32B
    NousResearch-Hermes-3-Llama-3.1-8B-tool_use Qwen-Qwen2.5-7B-Instruct Qwen-Qwen3-0.6B Qwen3-Coder Qwen3.5-4B
    StepFun3.5-Flash deepseek-ai-DeepSeek-R1-Distill-Qwen-32B deepseek-ai-DeepSeek-V3.1 deepseek-ai-DeepSeek-V3.2
    deepseek-ai-DeepSeek-V4 google-gemma-4-31B-it ibm-granite-granite-4.0 meetkai-functionary-medium-v3.1
    meta-llama-Llama-3.1-8B-Instruct meta-llama-Llama-3.2-3B-Instruct mistralai-Ministral-3-14B-Reasoning-2512
    mistralai-Mistral-Nemo-Instruct-2407 moonshotai-Kimi-K2 muse-glimmer openai-gpt-oss-120b tencent-Hy3
    unsloth-Apriel-1.5 unsloth-mistral-Devstral-Small-2507 upstage-Solar-Open-100B ByteDance-Seed-OSS
    poolside-Laguna-S-2.1 openbmb-MiniCPM5-1B"""


@pytest.mark.parametrize("template", NATIVE.split())
def test_parallel_calls_of_earlier_turns_are_written_as_the_family_writes_them(
    template: str, templates: Templates, describe: Describe
) -> None:
    description = describe(templates(template), bos_token="<bos>", eos_token="<eos>")
    family = choose(description).family
    text = PromptRenderer(family, description).render(CONVERSATION, TOOLS).text
    at = text.index("Weather?")
    for number, call in enumerate(native_ids(CONVERSATION, family.tool_calls)[1].tool_calls):
        arguments = json_text.loads(call.arguments)
        forms = filter(None, (family.tool_calls.call, family.tool_calls.bare_call))
        spelt = [spell_call(family.tool_calls, call.name, arguments, number, call.id, form) for form in forms]
        found = next((place for one in spelt if (place := text.find(one.strip(), at)) >= 0), None)
        assert found is not None, spelt[0]
        at = found
    assert "rain" in text
    assert "noon" in text


def test_ids_become_the_family_s_own() -> None:
    kimi = native_ids(CONVERSATION, kimi_k2.FAMILY.tool_calls)
    assert [call.id for call in kimi[1].tool_calls] == ["functions.get_weather:0", "functions.now:1"]
    assert [message.tool_call_id for message in kimi[2:]] == ["functions.get_weather:0", "functions.now:1"]
    mistral = native_ids(CONVERSATION, mistral_v13.FAMILY.tool_calls)
    ids = [call.id for call in mistral[1].tool_calls]
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    assert [message.tool_call_id for message in mistral[2:]] == ids
    assert native_ids(mistral, mistral_v13.FAMILY.tool_calls) == mistral


# names its calls by their ids, as the latest template of Kimi K2 does
CALLED_BY_ID = """{% for message in messages %}\
{% if message.tool_calls %}<|tool_calls_section_begin|>{% for call in message.tool_calls %}\
<|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>{{ call.function.arguments | tojson }}<|tool_call_end|>\
{% endfor %}<|tool_calls_section_end|>{% endif %}\
{% if message.role == 'tool' %}## Return of {{ message.tool_call_id }}\n{% endif %}{{ message.content }}\
{% endfor %}{# tools #}"""


@pytest.mark.parametrize(
    ("template", "numbers"),
    [
        ("Kimi-K2-Instruct", "012"),
        ("Kimi-K2-Thinking", "012"),
        (CALLED_BY_ID, "012"),
        ("moonshotai-Kimi-K2", "010"),  # counts the calls of a turn, whatever their ids are
    ],
    ids=lambda value: value[:20],
)
def test_numbers_of_calls_go_on_from_turn_to_turn_and_results_follow(
    template: str, numbers: str, templates: Templates, describe: Describe
) -> None:
    description = describe(template if "{" in template else templates(template))
    assert choose(description).family is kimi_k2.FAMILY
    again = (
        Message(role="user", content="And now?"),
        Message(role="assistant", tool_calls=(ToolCall(id="call_one", name="now", arguments="{}"),)),
        Message(role="tool", content="one", tool_call_id="call_one"),
    )  # a client may use an id again
    text = PromptRenderer(kimi_k2.FAMILY, description).render((*CONVERSATION, *again), TOOLS).text
    expected = [
        f"functions.{name}:{number}"
        for name, number in zip(("get_weather", "now", "now"), numbers, strict=True)
    ]
    assert re.findall(r"tool_call_begin\|>(\S+?)<", text) == expected
    assert re.findall(r"Return of (\S+?)(?:\n|\\n)", text) == expected


def test_where_a_message_holds_one_call_results_follow_their_calls() -> None:
    turns = one_call_a_message((*CONVERSATION, Message(role="user", content="Thanks")))
    shape = [(turn.role, turn.tool_calls[0].name if turn.tool_calls else turn.content) for turn in turns]
    assert shape == [
        ("user", "Weather?"),
        ("assistant", "get_weather"),
        ("tool", "rain"),
        ("assistant", "now"),
        ("tool", "noon"),
        ("user", "Thanks"),
    ]


@pytest.mark.parametrize(
    ("arguments", "result", "param"),
    [
        ('{"city": "</parameter>"}', "x", "messages[1].tool_calls[0].function.arguments"),
        ('{"city": "\\u003c/parameter\\u003e"}', "x", "messages[1].tool_calls[0].function.arguments"),
        ("{}", "a</parameter>", "messages[2].content"),
    ],
)
def test_reserved_closers_in_earlier_turns_are_refused(arguments: str, result: str, param: str) -> None:
    messages = (
        Message(role="user", content="</parameter> is fine here"),
        Message(role="assistant", tool_calls=(ToolCall(id="a", name="now", arguments=arguments),)),
        Message(role="tool", content=result, tool_call_id="a"),
    )
    with pytest.raises(InterlockError, match="cannot hold") as caught:
        check_reserved(messages, qwen3_coder.FAMILY, ())
    assert (caught.value.code, caught.value.param) == ("invalid_messages", param)
    check_reserved(messages, qwen3_coder.FAMILY, ("</parameter>",))  # a token of its own: text never becomes it


def test_text_and_thinking_before_a_call_share_the_place_that_gpt_oss_has(
    templates: Templates, describe: Describe
) -> None:
    description = describe(templates("openai-gpt-oss-120b"))
    messages = (
        CONVERSATION[0],
        Message(role="assistant", content="Let me see.", reasoning="Hm.", tool_calls=CALLS[:1]),
        CONVERSATION[2],
    )
    text = PromptRenderer(choose(description).family, description).render(messages, TOOLS).text
    assert "<|channel|>analysis<|message|>Hm.\n\nLet me see.<|end|>" in text


def test_kimi_k3_shows_dynamic_tools_where_they_are_declared(templates: Templates, describe: Describe) -> None:
    description = describe(templates("Kimi-K3"))
    messages = (
        Message(role="user", content="hi"),
        Message(role="developer", tools=TOOLS[1:]),
        Message(role="user", content="query"),
    )
    renderer = PromptRenderer(choose(description).family, description)
    prompt = renderer.render(messages, TOOLS)
    before, declared, after = prompt.text.partition("New Tools Available")
    assert declared
    opener = '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>'
    without = renderer.render(messages[:1], TOOLS[:1]).text
    assert prompt.text.startswith(without.removesuffix(opener))  # so the cached part of a prompt stays
    assert '"name":"get_weather"' in before
    assert '"name":"now"' not in before
    assert '"name":"now"' in after
    assert prompt.thinking == "open"
    off = renderer.render(messages, TOOLS, ReasoningOptions(enabled=False))
    assert off.thinking == "closed"


def test_a_message_that_only_declares_tools_is_left_out_where_the_template_lists_them_all(
    templates: Templates, describe: Describe
) -> None:
    description = describe(templates("Qwen-Qwen3-0.6B"))
    messages = (Message(role="user", content="hi"), Message(role="developer", tools=TOOLS[1:]))
    text = PromptRenderer(choose(description).family, description).render(messages, TOOLS).text
    assert text.count("<|im_start|>") == 3
    assert '"name": "now"' in text
