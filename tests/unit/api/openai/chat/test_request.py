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
from interlock.errors import InterlockError

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f"}}
LARK = 'start: "a"'
GBNF = 'root ::= "a"'


def read(text: str | None = None, **fields: Any) -> ChatCall:
    body = text or json.dumps({"model": "m", "messages": [USER], **fields})
    return read_chat_call(body.encode(), request_id="r", max_nesting=50)


def refused(**fields: Any) -> InterlockError:
    with pytest.raises(InterlockError) as caught:
        read(**fields)
    return caught.value


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
    "wire",
    [
        "banana",
        {},
        [],
        7,
        True,
        {"type": "function"},
        {"type": "function", "function": {}},
        {"type": "function", "function": {"name": 3}},
        {"type": "custom", "custom": {"name": "f"}},
        {"type": "allowed_tools"},
        {"type": "allowed_tools", "allowed_tools": []},
        {"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": [TOOL]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": [], "tools": [TOOL]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": "f"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp"}]}},
    ],
)
def test_wrong_tool_choices_are_named(wire: Any) -> None:
    error = refused(tool_choice=wire, tools=[TOOL])
    assert (error.code, error.param) == ("invalid_tools", "tool_choice")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"response_format": {"type": "text"}}, TextFormat()),
        ({"response_format": {"type": "json_object"}}, JsonObjectFormat()),
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


def user(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def assistant(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", **fields}]}


def called(arguments: Any, **fields: Any) -> dict[str, Any]:
    return assistant(
        tool_calls=[
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}, **fields}
        ]
    )


ARGUMENTS = "messages[1].tool_calls[0].function.arguments"
SCHEMA_FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        # wrong types
        ({"model": None}, "invalid_value", "model"),
        ({"messages": "Hi"}, "invalid_value", "messages"),
        ({"messages": ["Hi"]}, "invalid_value", "messages[0]"),
        ({"temperature": "0.5"}, "invalid_value", "temperature"),
        ({"temperature": True}, "invalid_value", "temperature"),
        ({"max_tokens": 1.5}, "invalid_value", "max_tokens"),
        ({"seed": 2**64}, "invalid_value", "seed"),
        ({"stream": "yes"}, "invalid_value", "stream"),
        ({"stop": [1]}, "invalid_value", "stop[0]"),
        ({"tools": {}}, "invalid_value", "tools"),
        ({"tool_constraints": "some"}, "invalid_value", "tool_constraints"),
        ({"reasoning_effort": "huge"}, "invalid_value", "reasoning_effort"),
        ({"interlock": {"open_object": True}}, "invalid_value", "interlock.open_object"),
        ({"timeout": 0}, "invalid_value", "timeout"),
        # messages
        ({"messages": [{"content": "x"}]}, "missing_field", "messages[0].role"),
        ({"messages": [USER, USER, {"role": "user", "content": 3}]}, "invalid_value", "messages[2].content"),
        ({"messages": [{"role": "banana", "content": "x"}]}, "invalid_value", "messages[0].role"),
        (
            {"messages": [{"role": "function", "name": "f", "content": "x"}]},
            "invalid_messages",
            "messages[0].role",
        ),
        (user(None), "missing_field", "messages[0].content"),
        (user([]), "invalid_messages", "messages[0].content"),
        (user([{"text": "a"}]), "missing_field", "messages[0].content[0].type"),
        (user([{"type": "text"}]), "missing_field", "messages[0].content[0].text"),
        (user([{"type": "text", "text": 1}]), "invalid_value", "messages[0].content[0].text"),
        (
            user([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]),
            "unsupported_parameter",
            "messages[0].content[1]",
        ),
        (user([{"type": "input_audio", "input_audio": {}}]), "unsupported_parameter", "messages[0].content[0]"),
        (assistant(content=None, function_call={"name": "f"}), "invalid_messages", "messages[1].function_call"),
        ({"messages": [{**USER, "tools": [TOOL]}]}, "invalid_messages", "messages[0].tools"),
        (
            {"messages": [{"role": "system", "content": "x", "tools": [TOOL]}]},
            "invalid_messages",
            "messages[0].content",
        ),
        (
            {"messages": [{"role": "developer", "tools": [{"type": "web_search"}]}]},
            "invalid_tools",
            "messages[0].tools[0].type",
        ),
        # earlier calls
        (called("{"), "invalid_messages", ARGUMENTS),
        (called("[1]"), "invalid_messages", ARGUMENTS),
        (called('"x"'), "invalid_messages", ARGUMENTS),
        (called('{"a":NaN}'), "invalid_messages", ARGUMENTS),
        (called({"a": 1}), "invalid_value", ARGUMENTS),
        (called("{}", type="custom"), "invalid_messages", "messages[1].tool_calls[0].type"),
        (
            assistant(tool_calls=[{"id": "c", "type": "function"}]),
            "missing_field",
            "messages[1].tool_calls[0].function",
        ),
        (assistant(tool_calls=[{"type": "function"}]), "missing_field", "messages[1].tool_calls[0].id"),
        # tools
        ({"tools": [{"function": {"name": "f"}}]}, "missing_field", "tools[0].type"),
        ({"tools": [{"type": "function", "name": "f"}]}, "missing_field", "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "missing_field", "tools[0].function.name"),
        ({"tools": [TOOL, {"type": "custom"}]}, "invalid_tools", "tools[1].type"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": "x"}}]},
            "invalid_schema",
            "tools[0].function.parameters",
        ),
        (
            {"tools": [{"type": "function", "defer_loading": True, "function": {"name": "f"}}]},
            "unsupported_parameter",
            "tools[0].defer_loading",
        ),
        # output formats
        ({"response_format": {}}, "missing_field", "response_format.type"),
        ({"response_format": "json"}, "invalid_value", "response_format"),
        ({"response_format": {"type": "banana"}}, "invalid_value", "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "missing_field", "response_format.json_schema"),
        (
            {"response_format": {"type": "json_schema", "schema": {"type": "object"}}},
            "missing_field",
            "response_format.json_schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
            "missing_field",
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": []}}},
            "invalid_schema",
            "response_format.json_schema.schema",
        ),
        ({"structured_outputs": {}}, "missing_field", "structured_outputs"),
        (
            {"structured_outputs": {"regex": "a", "choice": ["a"]}},
            "conflicting_parameters",
            "structured_outputs",
        ),
        (
            {"structured_outputs": {"regex": "a"}, "response_format": SCHEMA_FORMAT},
            "conflicting_parameters",
            "structured_outputs",
        ),
        ({"structured_outputs": {"json": "{"}}, "invalid_schema", "structured_outputs.json"),
        ({"structured_outputs": {"json": "3"}}, "invalid_schema", "structured_outputs.json"),
        ({"structured_outputs": {"json": 3}}, "invalid_schema", "structured_outputs.json"),
        (
            {"structured_outputs": {"grammar": {"definition": "x"}}},
            "missing_field",
            "structured_outputs.grammar.syntax",
        ),
        ({"structured_outputs": {"grammar": 3}}, "invalid_value", "structured_outputs.grammar"),
        # fields against fields
        ({"stream_options": {"include_usage": True}}, "invalid_value", "stream_options"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "conflicting_parameters", "max_completion_tokens"),
        ({"thinking_budget": 1, "thinking_token_budget": 2}, "conflicting_parameters", "thinking_budget"),
        (
            {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}},
            "conflicting_parameters",
            "chat_template_kwargs.enable_thinking",
        ),
        # values
        ({"chat_template_kwargs": {"tools": []}}, "invalid_value", "chat_template_kwargs.tools"),
        (
            {"chat_template_kwargs": {"enable_thinking": "no"}},
            "invalid_value",
            "chat_template_kwargs.enable_thinking",
        ),
        ({"stop": ""}, "invalid_value", "stop"),
        ({"stop": ["a"] * 17}, "invalid_value", "stop"),
        ({"logit_bias": {"x": 1}}, "invalid_value", "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "invalid_value", "logit_bias"),
        ({"logit_bias": {"٣": 1}}, "invalid_value", "logit_bias"),
        ({"logit_bias": {"1": "x"}}, "invalid_value", "logit_bias.1"),
        ({"logit_bias": {str(i): 1 for i in range(1025)}}, "invalid_value", "logit_bias"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], code: str, param: str) -> None:
    error = refused(**fields)
    assert (error.code, error.param) == (code, param), error.message
    assert (
        param.rsplit(".", maxsplit=1)[-1].split("[", maxsplit=1)[0] in error.message
        or code == "unsupported_parameter"
    )


def test_required_fields() -> None:
    for body, param in (('{"messages":[]}', "model"), ('{"model":"m"}', "messages")):
        with pytest.raises(InterlockError, match=param) as caught:
            read(body)
        assert (caught.value.code, caught.value.param) == ("missing_field", param)


def test_a_number_too_large_for_a_float_is_refused_where_it_is_read() -> None:
    with pytest.raises(InterlockError) as caught:
        read('{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e400}')
    assert caught.value.param == "temperature"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        (user(3), "a string or an array"),
        ({"temperature": "x"}, "a number"),
        ({"messages": [3]}, "an object"),
    ],
)
def test_messages_say_what_was_expected(fields: dict[str, Any], word: str) -> None:
    assert word in refused(**fields).message


def test_a_misplaced_schema_gets_a_hint() -> None:
    assert refused(response_format={"type": "json_schema", "schema": {}}).hint
    assert refused(tools=[{"type": "function", "name": "f", "parameters": {}}]).hint
