"""A whole server in front of a real vLLM, driven by official clients: what is asked for is what comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import jsonschema
import openai
import pytest

from benchmarks.peers.vllm_server import VllmServer
from interlock.config import EngineConfig, HttpConfig, ServerConfig, VllmConfig
from interlock.launch import BackgroundServer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
USER: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
UNIQUE = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


@pytest.fixture(scope="module")
def url(vllm: VllmServer, demo_model: Path) -> Iterator[str]:
    server = BackgroundServer(
        ServerConfig(
            served_name="demo",
            engine=EngineConfig(model=demo_model),
            http=HttpConfig(port=0, drain_s=1),
            vllm=VllmConfig(urls=(vllm.url,), tokenizer=demo_model),
        )
    )
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def ai(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120) as client:
        yield client


def chat(ai: openai.OpenAI, **fields: Any) -> Any:
    settings = {"temperature": 0, "max_tokens": 80, **fields}
    return ai.chat.completions.create(model="demo", messages=USER, **settings)


def test_free_text_is_the_same_streamed_and_whole(ai: openai.OpenAI):
    whole = chat(ai, max_tokens=12)
    chunks = list(chat(ai, max_tokens=12, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage
    assert whole.choices[0].finish_reason == "length"


@pytest.mark.parametrize("stream", [False, True])
def test_a_required_call_is_one(ai: openai.OpenAI, stream: bool):
    answer = chat(ai, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, stream=stream)
    if stream:
        deltas = [chunk.choices[0].delta.tool_calls or [] for chunk in answer if chunk.choices]
        arguments = "".join(call.function.arguments or "" for calls in deltas for call in calls)
    else:
        (call,) = answer.choices[0].message.tool_calls
        assert call.function.name == "get_weather"
        assert answer.choices[0].finish_reason == "tool_calls"
        arguments = call.function.arguments
    jsonschema.validate(json.loads(arguments), SCHEMA)


def test_a_schema_holds_at_any_temperature(ai: openai.OpenAI):
    format_ = {"type": "json_schema", "json_schema": {"name": "w", "schema": SCHEMA}}
    answers = chat(ai, response_format=format_, temperature=1.5, seed=3, n=3)
    for choice in answers.choices:
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content), SCHEMA)


def test_what_cannot_be_held_is_refused_by_its_place(ai: openai.OpenAI):
    format_ = {"type": "json_schema", "json_schema": {"name": "w", "schema": UNIQUE}}
    with pytest.raises(openai.BadRequestError) as refused:
        chat(ai, response_format=format_)
    error: Any = refused.value.body
    assert error["problems"][0]["keyword"] == "uniqueItems"
    with pytest.raises(openai.BadRequestError, match="priority cannot be had from the engine vllm"):
        chat(ai, extra_body={"priority": 1})


def test_stop_strings_and_scores(ai: openai.OpenAI):
    whole = chat(ai, max_tokens=12).choices[0].message.content
    word = whole.split()[2]
    cut = chat(ai, max_tokens=12, stop=[word])
    assert cut.choices[0].message.content == whole.split(word)[0]
    assert cut.choices[0].finish_reason == "stop"
    scored = chat(ai, max_tokens=4, logprobs=True, top_logprobs=2)
    assert len(scored.choices[0].logprobs.content) == 4


def test_the_other_dialects(url: str, ai: openai.OpenAI):
    response = ai.responses.create(
        model="demo",
        input="Weather?",
        max_output_tokens=80,
        text={"format": {"type": "json_schema", "name": "w", "schema": SCHEMA}},
    )
    jsonschema.validate(json.loads(response.output_text), SCHEMA)
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=120) as claude:
        message = claude.messages.create(
            model="demo",
            max_tokens=80,
            messages=USER,
            tools=[{"name": "get_weather", "input_schema": SCHEMA}],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        )
    (block,) = message.content
    assert block.type == "tool_use"
    jsonschema.validate(block.input, SCHEMA)
