"""Bodies that cannot become a ``GenerateRequest``: the error names the field as the client wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.openai.chat.request import read_chat_call
from interlock.errors import InterlockError

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f"}}


def refused(text: str | None = None, **fields: Any) -> InterlockError:
    body = text or json.dumps({"model": "m", "messages": [USER], **fields})
    with pytest.raises(InterlockError) as caught:
        read_chat_call(body.encode(), request_id="r", max_nesting=50)
    return caught.value


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
        # more than anyone has time to look at
        ({"messages": [USER] * 16_385}, "invalid_value", "messages"),
        (user([{"type": "text", "text": ""}] * 16_385), "invalid_value", "messages"),
        ({"tools": [TOOL] * 16_385}, "invalid_value", "tools"),
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
            {"messages": [{"role": "user", "content": [{"type": "tool_reference", "name": "f"}]}]},
            "invalid_messages",
            "messages[0].content[0]",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "tool", "tool_call_id": "c", "content": [{"type": "tool_reference"}]},
                ]
            },
            "missing_field",
            "messages[1].content[0].name",
        ),
        # what would be dropped in silence if it stayed where it is
        ({"tools": [{**TOOL, "strict": True}]}, "invalid_tools", "tools[0].strict"),
        ({"tools": [{**TOOL, "parameters": {"type": "object"}}]}, "invalid_tools", "tools[0].parameters"),
        (
            {"response_format": {**SCHEMA_FORMAT, "type": "text"}},
            "conflicting_parameters",
            "response_format.json_schema",
        ),
        (
            {"response_format": {"type": "text", "schema": {}}},
            "conflicting_parameters",
            "response_format.schema",
        ),
        (
            {"response_format": {**SCHEMA_FORMAT, "type": "json_object"}},
            "conflicting_parameters",
            "response_format.json_schema",
        ),
        (
            {"response_format": {**SCHEMA_FORMAT, "schema": {}}},
            "conflicting_parameters",
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": 3}},
            "invalid_schema",
            "response_format.schema",
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
        error = refused(body)
        assert (error.code, error.param) == ("missing_field", param)
        assert param in error.message


def test_a_number_too_large_for_a_float_is_refused_where_it_is_read() -> None:
    error = refused('{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e400}')
    assert error.param == "temperature"


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
