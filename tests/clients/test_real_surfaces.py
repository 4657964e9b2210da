"""Every API surface on the embedded model: what was asked for is what comes, whatever the model would have said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import jsonschema
import ollama
import openai
import pytest

pytestmark = pytest.mark.model

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 120}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ASK = "What is the weather in Paris?"
PATCH = r"\*\*\* (Add|Delete) [a-z]{1,8}\n"
PATCH_IN_LARK = r"""
start: "*** Begin Patch" LF hunk ~ 1..2 "*** End Patch"
hunk: "*** Add File: " NAME LF ("+" /[ -~]{0,8}/ LF) ~ 1..2
NAME: /[a-z]{1,8}/ ".py"
%import common.LF
"""
NESTED = 'start: pair "\\n"\npair: WORD | "[" pair "]"\nWORD: /[a-z]{1,5}/'
NESTED_TEXT = r"\[*[a-z]{1,5}\]*\n"
PATCH_TEXT = (
    r"\*\*\* Begin Patch\n(\*\*\* Add File: [a-z]{1,8}\.py\n(\+[ -~]{0,8}\n){1,2}){1,2}\*\*\* End Patch"
)
MODEL = "demo"


@pytest.fixture(scope="module")
def url(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=6, context_tokens=2048) as url:
        yield url


@pytest.fixture(scope="module")
def ai(url: str, make_client: Callable[..., openai.OpenAI]) -> openai.OpenAI:
    return make_client(url).with_options(timeout=120)


@pytest.fixture(scope="module")
def claude(url: str) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=120) as client:
        yield client


def function(name: str = "get_weather") -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "Weather", "strict": True, "parameters": WEATHER}


def anthropic_tool(name: str = "get_weather") -> Any:
    return {"name": name, "description": "Weather", "strict": True, "input_schema": WEATHER}


# Completions


@pytest.mark.local_engine("it gives no log probabilities of a prompt")
def test_a_text_is_scored_as_it_was_generated(ai: openai.OpenAI) -> None:
    prompt = "The capital of France is"
    said = ai.completions.create(model=MODEL, prompt=prompt, max_tokens=12, temperature=0, logprobs=3).choices[
        0
    ]
    whole = ai.completions.create(
        model=MODEL, prompt=prompt + said.text, max_tokens=1, temperature=0, logprobs=3, echo=True
    ).choices[0]
    assert said.logprobs is not None
    assert whole.logprobs is not None
    tokens, scores = whole.logprobs.tokens, whole.logprobs.token_logprobs
    assert tokens is not None
    assert scores is not None
    assert said.logprobs.tokens is not None
    assert "".join(tokens) == whole.text
    assert scores[0] is None
    end = len(tokens) - 1
    start = end - len(said.logprobs.tokens)
    assert tokens[start:end] == said.logprobs.tokens
    assert scores[start:end] == pytest.approx(said.logprobs.token_logprobs, abs=0.05)


# Anthropic


def test_messages_named_tool(claude: anthropic.Anthropic) -> None:
    fields: Any = {
        "model": MODEL,
        "max_tokens": 100,
        "extra_body": {"temperature": 0},
        "messages": [{"role": "user", "content": ASK}],
        "tools": [anthropic_tool("other"), anthropic_tool()],
        "tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
    }
    answer = claude.messages.create(**fields)
    (used,) = answer.content
    assert (used.type, used.name, answer.stop_reason) == ("tool_use", "get_weather", "tool_use")
    jsonschema.validate(used.input, WEATHER)
    with claude.messages.stream(**fields) as stream:
        streamed = stream.get_final_message()
    assert [block.input for block in streamed.content] == [used.input]
    counted = claude.messages.count_tokens(
        model=MODEL, messages=fields["messages"], tools=fields["tools"], tool_choice=fields["tool_choice"]
    )
    usage = answer.usage
    assert counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_messages_output_format(claude: anthropic.Anthropic) -> None:
    answer = claude.messages.create(
        model=MODEL,
        max_tokens=100,
        messages=[{"role": "user", "content": "Who are you?"}],
        output_config={"format": {"type": "json_schema", "schema": PERSON}},
    )
    jsonschema.validate(json.loads(answer.content[0].text), PERSON)
    assert answer.stop_reason == "end_turn"


def test_messages_refuse_what_cannot_be_held(claude: anthropic.Anthropic) -> None:
    tool: Any = {
        "name": "f",
        "strict": True,
        "input_schema": {"type": "object", "properties": {"a": {"pattern": "("}}},
    }
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(
            model=MODEL, max_tokens=9, messages=[{"role": "user", "content": ASK}], tools=[tool], stream=True
        )
    assert caught.value.body["error"]["param"] == "tools[0].input_schema"
    assert caught.value.body["error"]["problems"][0]["pointer"] == "/properties/a/pattern"


def test_an_agent_of_five_turns_over_messages_with_a_tool_added_on_the_way(claude: anthropic.Anthropic) -> None:
    conversation: list[Any] = [{"role": "user", "content": ASK}]
    for turn in range(5):
        names = ["get_weather"] if turn < 3 else ["get_weather", "get_forecast"]
        answer = claude.messages.create(
            model=MODEL,
            max_tokens=100,
            messages=conversation,
            tools=[anthropic_tool(name) for name in names],
            tool_choice={"type": "tool", "name": names[-1], "disable_parallel_tool_use": True},
        )
        assert [block.name for block in answer.content] == names[-1:]
        results: list[Any] = []
        for used in answer.content:
            jsonschema.validate(used.input, WEATHER)
            results.append({"type": "tool_result", "tool_use_id": used.id, "content": f"{turn} degrees"})
        conversation += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    assert len(conversation) == 11


# Chat


def test_an_agent_of_six_turns_over_chat_with_tools_of_a_developer_on_the_way(ai: openai.OpenAI) -> None:
    def declared(name: str) -> Any:
        return {"type": "function", "function": {"name": name, "strict": True, "parameters": WEATHER}}

    conversation: list[Any] = [{"role": "user", "content": ASK}]
    for turn in range(6):
        if turn == 3:
            developer = {"role": "developer", "content": "More tools.", "tools": [declared("get_forecast")]}
            conversation.append(developer)
        name = "get_weather" if turn < 3 else "get_forecast"
        answer = ai.chat.completions.create(
            model=MODEL,
            messages=conversation,
            tools=[declared("get_weather")],
            tool_choice={"type": "function", "function": {"name": name}},
            parallel_tool_calls=False,
            max_completion_tokens=80,
        )
        message = answer.choices[0].message
        (used,) = message.tool_calls
        assert used.function.name == name
        jsonschema.validate(json.loads(used.function.arguments), WEATHER)
        result = {"role": "tool", "tool_call_id": used.id, "content": f"{turn} degrees"}
        conversation += [message.to_dict(), result]


# Responses


def test_responses_format_and_history(ai: openai.OpenAI) -> None:
    text: Any = {"format": {"type": "json_schema", "name": "person", "strict": True, "schema": PERSON}}
    first = ai.responses.create(model=MODEL, input="Who are you?", text=text, max_output_tokens=100)
    jsonschema.validate(json.loads(first.output_text), PERSON)
    second = ai.responses.create(
        model=MODEL, input="And now?", text=text, previous_response_id=first.id, max_output_tokens=100
    )
    jsonschema.validate(json.loads(second.output_text), PERSON)
    assert second.usage.input_tokens > first.usage.input_tokens


@pytest.mark.parametrize(
    ("syntax", "definition", "expected"),
    [("regex", PATCH, PATCH), ("lark", PATCH_IN_LARK, PATCH_TEXT), ("lark", NESTED, NESTED_TEXT)],
    ids=["regex", "lark", "nested lark"],
)
def test_responses_custom_tool_held_to_a_grammar(
    ai: openai.OpenAI, syntax: str, definition: str, expected: str
) -> None:
    tool: Any = {
        "type": "custom",
        "name": "patch",
        "description": "Edit a file",
        "format": {"type": "grammar", "syntax": syntax, "definition": definition},
    }
    fields: Any = {
        "model": MODEL,
        "input": "Add a file.",
        "tools": [tool],
        "tool_choice": {"type": "custom", "name": "patch"},
        "parallel_tool_calls": False,
        "max_output_tokens": 200,
        "temperature": 0,
    }
    (used,) = ai.responses.create(**fields).output
    assert used.type == "custom_tool_call"
    assert re.fullmatch(expected, used.input)
    assert used.input.count("[") == used.input.count("]")
    events = list(ai.responses.create(**fields, stream=True))
    deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == used.input
    assert events[-1].type == "response.completed"


def test_an_agent_of_five_turns_over_responses_with_tools_added_on_the_way(ai: openai.OpenAI) -> None:
    conversation: list[Any] = [{"role": "user", "content": ASK}]
    seen = set()
    for turn in range(6):
        if turn == 3:
            tools = {"type": "additional_tools", "role": "developer", "tools": [function("get_forecast")]}
            conversation.append(tools)
        name = "get_weather" if turn < 3 else "get_forecast"
        answer = ai.responses.create(
            model=MODEL,
            input=conversation,
            tools=[function()],
            tool_choice={"type": "function", "name": name},
            parallel_tool_calls=False,
            max_output_tokens=80,
        )
        (used,) = answer.output
        jsonschema.validate(json.loads(used.arguments), WEATHER)
        seen.add(used.name)
        result = {"type": "function_call_output", "call_id": used.call_id, "output": f"{turn} degrees"}
        conversation += [used.to_dict(), result]
    assert seen == {"get_weather", "get_forecast"}


# Completions, several answers, scores


@pytest.mark.local_engine("scores under a constraint are the model's own there")
def test_completions_held_to_a_regex_with_scores(ai: openai.OpenAI) -> None:
    answer = ai.completions.create(
        model=MODEL,
        prompt=["The date is ", "It was "],
        n=2,
        logprobs=2,
        max_tokens=20,
        extra_body={"structured_outputs": {"regex": r"\d{4}-\d{2}"}},
    )
    assert len(answer.choices) == 4
    for choice in answer.choices:
        assert re.fullmatch(r"\d{4}-\d{2}", choice.text)
        assert "".join(choice.logprobs.tokens) == choice.text
        assert all(value <= 0 for value in choice.logprobs.token_logprobs)
        assert all(len(top) <= 2 for top in choice.logprobs.top_logprobs)


def test_token_ids_are_the_text_that_they_spell(ai: openai.OpenAI, url: str) -> None:
    ids = httpx.post(f"{url}/tokenize", json={"prompt": "Once upon a time"}).json()["tokens"]
    texts = {
        ai.completions.create(model=MODEL, prompt=prompt, max_tokens=8, temperature=0, echo=True)
        .choices[0]
        .text
        for prompt in (ids, "Once upon a time")
    }
    assert len(texts) == 1
    assert texts.pop().startswith("Once upon a time")


@pytest.mark.local_engine("scores under a constraint are the model's own there")
def test_several_chat_answers_with_scores(ai: openai.OpenAI) -> None:
    fields: Any = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Yes or no?"}],
        "seed": 5,
        "logprobs": True,
        "top_logprobs": 3,
        "extra_body": {"structured_outputs": {"choice": ["yes", "no"]}},
    }
    answer = ai.chat.completions.create(**fields, n=3)
    for offset, choice in enumerate(answer.choices):
        assert choice.message.content in ("yes", "no")
        assert "".join(token.token for token in choice.logprobs.content) == choice.message.content
        alone = ai.chat.completions.create(**{**fields, "seed": 5 + offset})
        assert alone.choices[0].message.content == choice.message.content


# Our own and Ollama's


def test_render_and_check(url: str) -> None:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": ASK}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
        "tool_choice": "required",
    }
    rendered = httpx.post(f"{url}/v1/chat/completions/render", json=body).json()
    assert ASK in rendered["prompt"]
    assert "JsonValue" in rendered["constraint"]["tree"]
    checked = httpx.post(f"{url}/v1/check", json={"json_schema": PERSON, "tools": body["tools"]}).json()
    assert (checked["ok"], checked["problems"]) == (True, [])
    wrong = httpx.post(f"{url}/v1/check", json={"json_schema": {"properties": {"a": {"pattern": "("}}}}).json()
    assert (wrong["ok"], wrong["problems"][0]["pointer"]) == (False, "/properties/a/pattern")


def test_ollama_format(url: str) -> None:
    client = ollama.Client(host=url, timeout=120)
    answer = client.chat(
        model=MODEL,
        messages=[{"role": "user", "content": "Who are you?"}],
        format=PERSON,
        options={"num_predict": 100},
    )
    jsonschema.validate(json.loads(answer.message.content or ""), PERSON)
    client._client.close()
