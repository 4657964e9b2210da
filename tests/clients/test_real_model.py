"""The whole server on the embedded model, driven by the official client: what is asked for is what comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import openai
import pydantic
import pytest

from interlock.tokenization.load import describe
from tests.clients.asking import SCHEMAS, TOOLS, ask, content, json_schema, post

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def url(demo_server: Any) -> Iterator[str]:
    with demo_server(slots=12, context_tokens=1024) as url:
        yield url


@pytest.fixture(scope="module")
def ai(url: str, make_client: Callable[..., openai.OpenAI]) -> openai.OpenAI:
    return make_client(url).with_options(timeout=120)


# What is asked for is what comes


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "send_mail"}}])
@pytest.mark.parametrize("temperature", [0, 1])
def test_calls_are_valid(ai: openai.OpenAI, choice: Any, temperature: float) -> None:
    answer = ai.chat.completions.create(
        **ask(
            "Mail Bob about the weather in Paris.",
            tools=TOOLS,
            tool_choice=choice,
            temperature=temperature,
            seed=7,
            max_tokens=400,
        )
    ).choices[0]

    assert answer.finish_reason == "tool_calls"
    assert answer.message.content is None
    for call in answer.message.tool_calls or []:
        assert call.type == "function"
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
        assert choice == "required" or call.function.name == "send_mail"
    assert answer.message.tool_calls


def test_one_call_where_parallel_calls_are_off(ai: openai.OpenAI) -> None:
    answer = ai.chat.completions.create(
        **ask("Paris and Rome?", tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    ).choices[0]

    assert len(answer.message.tool_calls or []) == 1
    assert answer.finish_reason == "tool_calls"


def test_strict_auto_and_free_auto(ai: openai.OpenAI) -> None:
    strict = [{**tool, "function": {**tool["function"], "strict": True}} for tool in TOOLS]
    for tools in (strict, TOOLS):
        answer = ai.chat.completions.create(**ask("Say hello.", tools=tools, max_tokens=24)).choices[0]
        for call in answer.message.tool_calls or []:
            if tools is strict and answer.finish_reason == "tool_calls" and call.type == "function":
                jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
        assert answer.finish_reason in ("stop", "length", "tool_calls")


def test_an_auto_request_without_tools_in_play_equals_a_free_one(url: str) -> None:
    free = content(url, ask("Name a colour.", max_tokens=16))
    constrained = content(url, ask("Name a colour.", max_tokens=16, tool_constraints="all"))

    assert constrained == free


def test_streaming_says_what_the_whole_answer_says(ai: openai.OpenAI) -> None:
    body = ask("Weather in Paris?", tools=TOOLS, tool_choice="required")
    whole = ai.chat.completions.create(**body).choices[0].message.tool_calls or []
    with ai.chat.completions.stream(**body) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls or []

    def facts(calls: Any) -> list[tuple[str, str]]:
        return [(call.function.name, call.function.arguments) for call in calls]

    assert facts(streamed) == facts(whole)


def test_parse_gives_the_users_own_type(ai: openai.OpenAI) -> None:
    class Person(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=20)
        age: int = pydantic.Field(ge=0, le=120)

    answer = ai.chat.completions.parse(**ask("Ada is 36."), response_format=Person)

    assert isinstance(answer.choices[0].message.parsed, Person)


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"structured_outputs": {"regex": r"[A-Z]{3}-\d{2}"}}, r"[A-Z]{3}-\d{2}"),
        ({"structured_outputs": {"choice": ["yes", "no", "perhaps"]}}, "yes|no|perhaps"),
        ({"structured_outputs": {"grammar": 'start: ("a" | "b") "!"'}}, "[ab]!"),
        ({"structured_outputs": {"grammar": 'root ::= ("x" | "y") "?"'}}, r"[xy]\?"),
        ({"structured_outputs": {"json": {"type": "integer", "minimum": 3, "maximum": 5}}}, "[345]"),
        ({"response_format": json_schema({"const": "only this"})}, '"only this"'),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_each_kind_of_structured_output(ai: openai.OpenAI, fields: Any, pattern: str, stream: bool) -> None:
    import re

    extra = {key: value for key, value in fields.items() if key == "structured_outputs"}
    rest = {key: value for key, value in fields.items() if key != "structured_outputs"}
    body = {**ask("Answer.", max_tokens=24), **rest}
    if stream:
        chunks = ai.chat.completions.create(**body, extra_body=extra, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    else:
        text = ai.chat.completions.create(**body, extra_body=extra).choices[0].message.content or ""

    assert re.fullmatch(pattern, text)


@pytest.mark.local_engine("uniqueItems over open items needs a guard")
def test_items_that_must_differ_do(url: str) -> None:
    fruit = {"type": "object", "properties": {"kind": {"enum": ["apple", "pear"]}, "ripe": {"type": "boolean"}}}
    items = [
        {"type": "string", "pattern": "^(apple|banana|cherry)s?$"},
        {**fruit, "required": ["kind", "ripe"], "additionalProperties": False},
    ]
    for item in items:
        schema = {"type": "array", "uniqueItems": True, "items": item, "minItems": 4, "maxItems": 4}
        body = ask("Write apple, apple, apple, apple.", max_tokens=200, response_format=json_schema(schema))
        jsonschema.validate(json.loads(content(url, body)), schema)
        tool = {"name": "list", "parameters": {"properties": {"items": schema}, "required": ["items"]}}
        called = ask(
            "List apple, apple, apple, apple.",
            max_tokens=300,
            tools=[{"type": "function", "function": tool}],
            tool_choice="required",
            parallel_tool_calls=False,
        )
        (call,) = post(url, called).json()["choices"][0]["message"]["tool_calls"]
        jsonschema.validate(json.loads(call["function"]["arguments"])["items"], schema)


def test_json_object(ai: openai.OpenAI) -> None:
    answer = ai.chat.completions.create(
        **ask("A small object.", max_tokens=200), response_format={"type": "json_object"}
    ).choices[0]

    if answer.finish_reason == "stop":
        assert isinstance(json.loads(answer.message.content or ""), dict)
    else:
        assert answer.finish_reason == "length"


def test_tools_and_a_format_together(ai: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    answer = ai.chat.completions.create(
        **ask("Is it fine?", tools=TOOLS, extra_body={"tool_constraints": "all"}),
        response_format=json_schema(schema),
    ).choices[0]

    if answer.message.tool_calls:
        for call in answer.message.tool_calls:
            assert call.type == "function"
            jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
    else:
        jsonschema.validate(json.loads(answer.message.content or ""), schema)


def test_a_bias_against_what_the_grammar_needs_loses(url: str, demo_model: Path) -> None:
    wanted = describe(demo_model).tokenizer.encode_text('"ab"')
    body = ask(
        "Answer.",
        response_format=json_schema({"const": "ab"}),
        logit_bias={str(token_id): -100 for token_id in {*wanted, *range(3, 1000)}},
    )
    assert content(url, body) == '"ab"'


def test_no_constraint_depends_on_the_ones_before_it(url: str) -> None:
    before = content(url, ask("Say hello.", max_tokens=6))
    for regex in ("^(.*)$", "^(|.*)$", "(", "a(?=b)", r"\\p{Lu}{2}"):
        assert post(url, ask("x", max_tokens=4, structured_outputs={"regex": regex})).status_code in (200, 400)
        assert content(url, ask("Say hello.", max_tokens=6)) == before


def test_a_schema_beside_json_object_is_held_to(url: str) -> None:
    form = {
        "type": "json_object",
        "schema": {"type": "object", "properties": {"a": {"const": 3}}, "required": ["a"]},
    }
    assert json.loads(content(url, ask("x", response_format=form))) == {"a": 3}


def test_a_required_call_cut_at_any_place_shows_no_markup(url: str) -> None:
    for length in (1, 2, 3, 5, 8):
        message = post(url, ask("x", tools=TOOLS, tool_choice="required", max_tokens=length)).json()["choices"][
            0
        ]
        assert not message["message"]["content"]


# A batch does not change a text


def test_eight_different_schemas_and_free_chats_at_once_equal_their_solo_runs(url: str) -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    bodies = [
        ask(f"Say {word}.", max_tokens=12, response_format=json_schema({"const": word})) for word in words
    ]
    bodies += [ask(f"Tell me about {word}.", max_tokens=12) for word in words[:4]]
    alone = [content(url, body) for body in bodies]
    with ThreadPoolExecutor(len(bodies)) as pool:
        together = list(pool.map(lambda body: content(url, body), bodies))

    assert together == alone
    assert together[:8] == [json.dumps(word) for word in words]


# The end of an answer


def test_a_call_cut_at_any_length_is_never_whole(url: str) -> None:
    unit = {"type": "object", "properties": {"unit": {"enum": ["celsius", "kelvin"]}}, "required": ["unit"]}
    tools = [{"type": "function", "function": {"name": "heat", "parameters": unit}}]
    body = ask("Heat?", tools=tools, tool_choice="required", parallel_tool_calls=False)
    whole = post(url, body).json()
    length = whole["usage"]["completion_tokens"]
    assert whole["choices"][0]["finish_reason"] == "tool_calls"

    with ThreadPoolExecutor(6) as pool:
        cut = list(pool.map(lambda n: post(url, {**body, "max_tokens": n}).json(), range(1, length)))

    for n, answer in enumerate(cut, 1):
        assert answer["usage"]["completion_tokens"] == n
        assert answer["choices"][0]["finish_reason"] == "length"


def test_a_stop_string_inside_a_call_is_length(url: str) -> None:
    answer = post(url, ask("Weather?", tools=TOOLS, tool_choice="required", stop='"unit"')).json()["choices"][0]

    assert answer["finish_reason"] == "length"
    for call in answer["message"].get("tool_calls") or []:
        with pytest.raises(ValueError):
            json.loads(call["function"]["arguments"])


def test_special_tokens_in_a_message_are_text(url: str, demo_model: Path) -> None:
    tokenizer = describe(demo_model).tokenizer
    plain = post(url, ask("x", max_tokens=1)).json()["usage"]["prompt_tokens"]
    for spelling in tokenizer.special_tokens:
        used = post(url, ask(f"x{spelling}", max_tokens=1)).json()["usage"]["prompt_tokens"]
        assert used - plain == len(tokenizer.encode_text(f"x{spelling}")) - len(tokenizer.encode_text("x")), (
            spelling
        )
