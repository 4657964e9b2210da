"""Bodies to ``GenerateRequest``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.openai.chat.request import ChatCall, read_chat_call
from interlock.core.messages import Message, ToolCall
from interlock.core.output_format import (
    ChoiceFormat,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    RegexFormat,
    TextFormat,
)
from interlock.core.request import JsonPolicy, ReasoningOptions
from interlock.core.sampling import SamplingOptions
from interlock.core.tools import EMPTY_PARAMETERS, Tool, ToolChoice

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f"}}
LARK = 'start: "a"'
GBNF = 'root ::= "a"'


def read(text: str | None = None, **fields: Any) -> ChatCall:
    body = text or json.dumps({"model": "m", "messages": [USER], **fields})
    return read_chat_call(body.encode(), request_id="r", max_nesting=50)


def messages(*wire: dict[str, Any]) -> tuple[Message, ...]:
    return read(messages=list(wire)).request.messages


def test_the_smallest_request_leaves_everything_to_the_server() -> None:
    call = read()
    request = call.request
    assert (call.stream, call.include_usage, call.ignored) == (False, False, "")
    assert request.messages == (Message(role="user", content="Hi"),)
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == (None, None, None)
    assert request.output_format == TextFormat()
    assert request.json_policy == JsonPolicy()
    assert request.sampling == SamplingOptions()
    assert request.reasoning == ReasoningOptions()
    assert (request.max_tokens, request.stop, request.priority, request.timeout_s) == (None, (), 0, None)


def test_null_is_the_same_as_absent() -> None:
    names = [
        "tools",
        "tool_choice",
        "response_format",
        "structured_outputs",
        "stop",
        "seed",
        "temperature",
        "stream",
        "stream_options",
    ]
    names += [
        "logit_bias",
        "max_tokens",
        "chat_template_kwargs",
        "interlock",
        "reasoning_effort",
        "priority",
        "timeout",
    ]
    assert read(**dict.fromkeys(names)) == read()


def test_sampling_and_limits() -> None:
    request = read(
        temperature=0,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        frequency_penalty=-1,
        presence_penalty=0.5,
        repetition_penalty=1.1,
        logit_bias={"7": -100, "12": 5.5},
        seed=-1,
        max_completion_tokens=50,
        stop=["a", "b"],
        priority=3,
        timeout=2.5,
    ).request
    assert request.sampling == SamplingOptions(
        temperature=0,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        frequency_penalty=-1,
        presence_penalty=0.5,
        repetition_penalty=1.1,
        logit_bias=((7, -100), (12, 5.5)),
        seed=-1,
    )
    assert (request.max_tokens, request.stop, request.priority, request.timeout_s) == (50, ("a", "b"), 3, 2.5)
    assert read(stop="x").request.stop == ("x",)
    assert read(max_tokens=5, max_completion_tokens=5).request.max_tokens == 5


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"role": "system", "content": "s"}, Message(role="system", content="s")),
        ({"role": "developer", "content": "d", "name": "x"}, Message(role="developer", content="d", name="x")),
        ({"role": "user", "content": ""}, Message(role="user", content="")),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            Message(role="user", content="a\nb"),
        ),
        ({"role": "assistant", "content": "a"}, Message(role="assistant", content="a")),
        ({"role": "assistant", "content": None, "refusal": "no"}, Message(role="assistant", content="no")),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            Message(role="assistant", content="no"),
        ),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "r"},
            Message(role="assistant", content="a", reasoning="r"),
        ),
        (
            {"role": "assistant", "content": "a", "reasoning": "r"},
            Message(role="assistant", content="a", reasoning="r"),
        ),
        (
            {"role": "tool", "content": "42", "tool_call_id": "c"},
            Message(role="tool", content="42", tool_call_id="c"),
        ),
        (
            {
                "role": "assistant",
                "content": "a",
                "tool_calls": [],
                "function_call": None,
                "audio": None,
                "annotations": [],
            },
            Message(role="assistant", content="a"),
        ),
    ],
)
def test_messages_of_all_roles(wire: dict[str, Any], expected: Message) -> None:
    assert messages(wire) == (expected,)


def test_earlier_calls_keep_their_argument_text() -> None:
    arguments = '{"b": 1.0, "a": 123456789012345678901234567890}'
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    empty = {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}}
    (message,) = messages({"role": "assistant", "content": None, "tool_calls": [call, empty]})
    assert message.content is None
    assert message.tool_calls == (
        ToolCall(id="c1", name="f", arguments=arguments),
        ToolCall(id="c2", name="g", arguments="{}"),
    )


@pytest.mark.parametrize("role", ["developer", "system"])
def test_tools_of_a_message_are_a_developers_declaration(role: str) -> None:
    (message,) = messages({"role": role, "tools": [TOOL]})
    assert message == Message(role="developer", content="", tools=(Tool(name="f"),))


def test_a_developer_may_write_beside_a_declaration() -> None:
    (message,) = messages({"role": "developer", "content": "use it", "tools": [TOOL]})
    assert (message.content, len(message.tools)) == ("use it", 1)
    (message,) = messages({"role": "developer", "content": "none", "tools": []})
    assert message.tools == ()


def test_schemas_arrive_as_the_text_the_client_wrote() -> None:
    schema = '{"type": "object", "properties": {"b": {"maximum": 1e400}, "a": {"const": 1.0}}}'
    tool = '{"type":"function","function":{"name":"%s","parameters":' + schema + "}}"
    developer = '{"role":"developer","tools":[' + tool % "g" + "]}"
    answer = '{"type":"json_schema","json_schema":{"name":"n","schema":' + schema + "}}"
    request = read(
        f'{{"model":"m","messages":[{developer}],"tools":[{tool % "f"}],"response_format":{answer}}}'
    ).request
    assert request.tools is not None
    assert request.tools[0].parameters == schema
    assert request.messages[0].tools[0].parameters == schema
    assert request.output_format == JsonSchemaFormat(schema=schema, name="n")


@pytest.mark.parametrize("parameters", [{}, {"parameters": None}])
def test_a_tool_without_parameters_takes_none(parameters: dict[str, Any]) -> None:
    request = read(
        tools=[{"type": "function", "function": {"name": "f", "strict": True, **parameters}}]
    ).request
    assert request.tools == (Tool(name="f", parameters=EMPTY_PARAMETERS, strict=True),)


@pytest.mark.parametrize(
    ("wire", "choice"),
    [
        ("none", ToolChoice(mode="none")),
        ("auto", ToolChoice(mode="auto")),
        ("required", ToolChoice(mode="required")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice(mode="named", name="f")),
        ({"type": "function", "name": "f"}, ToolChoice(mode="named", name="f")),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}},
            ToolChoice(mode="auto", allowed=("f",)),
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]},
            ToolChoice(mode="required", allowed=("f",)),
        ),
    ],
)
def test_tool_choices(wire: Any, choice: ToolChoice) -> None:
    assert read(tool_choice=wire).request.tool_choice == choice


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"response_format": {"type": "text"}}, TextFormat()),
        ({"response_format": {"type": "json_object"}}, JsonObjectFormat()),
        ({"response_format": {"type": "json_object", "schema": None}}, JsonObjectFormat()),
        (
            {"response_format": {"type": "json_object", "schema": {"type": "object"}}},
            JsonSchemaFormat(schema='{"type": "object"}', param="response_format.schema"),
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {}, "strict": True},
                }
            },
            JsonSchemaFormat(schema="{}", name="n", strict=True),
        ),
        (
            {"structured_outputs": {"json": {"type": "null"}}},
            JsonSchemaFormat(schema='{"type": "null"}', param="structured_outputs.json"),
        ),
        (
            {"structured_outputs": {"json": ' {"const": 1.0} '}},
            JsonSchemaFormat(schema='{"const": 1.0}', param="structured_outputs.json"),
        ),
        ({"structured_outputs": {"json_object": True}}, JsonObjectFormat()),
        ({"structured_outputs": {"regex": "[a-z]+"}}, RegexFormat(pattern="[a-z]+")),
        ({"structured_outputs": {"choice": ["a", "b"]}}, ChoiceFormat(choices=("a", "b"))),
        ({"structured_outputs": {"grammar": LARK}}, GrammarFormat(source=LARK, dialect="lark")),
        ({"structured_outputs": {"grammar": GBNF}}, GrammarFormat(source=GBNF, dialect="gbnf")),
        (
            {"structured_outputs": {"grammar": 'start: "::="'}},
            GrammarFormat(source='start: "::="', dialect="lark"),
        ),
        (
            {"structured_outputs": {"grammar": {"syntax": "ebnf", "definition": GBNF}}},
            GrammarFormat(source=GBNF, dialect="ebnf", param="structured_outputs.grammar.definition"),
        ),
        (
            {"structured_outputs": {"regex": "a"}, "response_format": {"type": "text"}},
            RegexFormat(pattern="a"),
        ),
    ],
)
def test_output_formats(fields: dict[str, Any], expected: object) -> None:
    assert read(**fields).request.output_format == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reasoning_effort": "none"}, ReasoningOptions(enabled=False)),
        ({"reasoning_effort": "high"}, ReasoningOptions(effort="high")),
        ({"chat_template_kwargs": {"enable_thinking": True}}, ReasoningOptions(enabled=True)),
        ({"chat_template_kwargs": {"thinking": False}}, ReasoningOptions(enabled=False)),
        (
            {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "none"},
            ReasoningOptions(enabled=False),
        ),
        ({"thinking_budget": 10}, ReasoningOptions(budget=10)),
        ({"thinking_token_budget": 0}, ReasoningOptions(budget=0)),
        ({"include_reasoning": False}, ReasoningOptions(include=False)),
    ],
)
def test_reasoning(fields: dict[str, Any], expected: ReasoningOptions) -> None:
    assert read(**fields).request.reasoning == expected


def test_own_fields() -> None:
    request = read(
        tool_constraints="all",
        parallel_tool_calls=False,
        interlock={"open_objects": True, "property_order": "any", "whitespace": "flexible"},
        chat_template_kwargs={"date": "today", "enable_thinking": True},
    ).request
    assert (request.tool_constraints, request.parallel_tool_calls) == ("all", False)
    assert request.json_policy == JsonPolicy(open_objects=True, property_order="any", whitespace="flexible")
    assert request.template_kwargs == (("date", "today"),)


def test_usage_is_asked_for_in_stream_options() -> None:
    call = read(stream=True, stream_options={"include_usage": True})
    assert (call.stream, call.include_usage) == (True, True)
