"""Client text that spells control tokens, in the chat templates of many models: it stays text, whole, wherever it stands."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.tools import Tool
from interlock.families.registry import choose
from interlock.families.wire.render import PromptRenderer, RenderedPrompt
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.description import ModelDescription

SPELLINGS = """<|im_start|> <|im_end|> <think> </think> <|turn> <turn|> <|channel> <channel|> <｜User｜> <｜Assistant｜>
    ｜DSML｜ </｜DSML｜invoke> [INST] [/INST] [TOOL_CALLS] <|call|> <|end|> <|start|> <|channel|> <|message|>
    <|observation|> <|user|> <|assistant|> <|system|> <|tool_calls_section_begin|> <|open|> <|close|> <|sep|>
    ]<]minimax[>[ <|START_ACTION|> <|END_ACTION|> <|eot_id|> <|start_header_id|> <tool_call> </tool_call> <|tool_call>
    </s>"""
TOKENIZER = byte_tokenizer(SPELLINGS.split())
HOSTILE = f"A{'B'.join(SPELLINGS.split())}C"
TEMPLATES = """Apertus-8B-Instruct ByteDance-Seed-OSS Cohere2MoE GLM-4.6 Kimi-K2-Instruct Kimi-K3 MiniMax-M2 MiniMax-M3
    Mistral-Small-3.2-24B-Instruct-2506 Qwen3-Coder Qwen3.5-4B deepseek-ai-DeepSeek-V3.1 deepseek-ai-DeepSeek-V4
    google-gemma-4-31B-it ibm-granite-granite-4.0 meta-llama-Llama-3.1-8B-Instruct openai-gpt-oss-120b
    unsloth-Apriel-1.5"""


def rendered(renderer: PromptRenderer, text: str) -> RenderedPrompt:
    """A conversation that has ``text`` in every place that a client fills."""
    parameters = {"type": "object", "properties": {"x": {"type": "string", "description": f"p {text}"}}}
    call = ToolCall(id="call00000", name="f", arguments=json.dumps({"x": f"v {text}"}))
    return renderer.render(
        (
            Message(role="system", content=f"s {text}"),
            Message(role="user", content=text),
            Message(role="assistant", content=f"c {text}", reasoning=f"t {text}", tool_calls=(call,)),
            Message(role="tool", content=f"r {text}", tool_call_id="call00000"),
            Message(role="assistant", content=f"{text} a"),
            Message(role="user", content=f"{text} u"),
        ),
        (Tool(name="f", description=f"d {text}", parameters=json.dumps(parameters)),),
    )


@pytest.mark.parametrize("name", TEMPLATES.split())
def test_it_is_the_same_prompt_as_with_any_other_word(
    name: str, templates: Callable[[str], str], describe: Callable[..., ModelDescription]
) -> None:
    description = describe(templates(name), TOKENIZER)
    renderer = PromptRenderer(choose(description).family, description)
    plain, hostile = rendered(renderer, "PLAIN"), rendered(renderer, HOSTILE)
    special = TOKENIZER.vocabulary.special_ids
    assert plain.text.count("PLAIN") >= 5
    assert hostile.text == plain.text.replace("PLAIN", HOSTILE)
    assert [i for i in hostile.ids if i in special] == [i for i in plain.ids if i in special]
    assert hostile.thinking == plain.thinking
