"""Responses to our own types, and refusals by the client's names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.core.messages import Message, ToolCall
from interlock.core.output_format import JsonObjectFormat, TextFormat
from interlock.core.tools import ToolChoice
from interlock.errors import InterlockError

PATH = "/v1/responses"
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CUSTOM = {"type": "custom", "name": "c"}


def grammar(syntax: str | None, definition: str | None = "a+") -> dict[str, Any]:
    return {**CUSTOM, "format": {"type": "grammar", "syntax": syntax, "definition": definition}}


@pytest.fixture
def post(api):
    async def send(**fields: Any) -> Any:
        return await api.client.post(PATH, json={"model": "scripted", "input": "Hi", **fields})

    return send


@pytest.fixture
def read(api, post):
    async def send(**fields: Any) -> Any:
        response = await post(**fields)
        assert response.status_code == 200, response.text
        return api.service.requests[-1]

    return send


async def test_what_the_model_said_in_one_turn_is_one_message(read) -> None:
    request = await read(
        input=[
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
            },
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "hm"}],
            },
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": 1.50}'},
            {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": 'x"\n'},
            {"type": "function_call_output", "call_id": "1", "output": "r"},
            {
                "type": "custom_tool_call_output",
                "call_id": "2",
                "output": [{"type": "input_text", "text": "s"}],
            },
            {"type": "message", "role": "assistant", "content": "One."},
            {"type": "message", "role": "assistant", "content": "Two."},
            {"role": "developer", "content": "Now."},
        ]
    )
    assert request.messages == (
        Message(role="user", content="a\nb"),
        Message(
            role="assistant",
            content="I look.",
            reasoning="hm",
            tool_calls=(
                ToolCall(id="1", name="f", arguments='{"a": 1.50}'),
                ToolCall(id="2", name="c", arguments='{"input": "x\\"\\n"}'),
            ),
        ),
        Message(role="tool", content="r", tool_call_id="1"),
        Message(role="tool", content="s", tool_call_id="2"),
        Message(role="assistant", content="One."),
        Message(role="assistant", content="Two."),
        Message(role="developer", content="Now."),
    )


async def test_additional_tools_are_those_of_a_developer_message(read) -> None:
    request = await read(
        input=[
            {"role": "user", "content": "a"},
            {"type": "additional_tools", "role": "developer", "tools": [TOOL]},
        ]
    )
    assert [tool.name for tool in request.messages[1].tools] == ["f"]
    assert request.messages[1].role == "developer"


@pytest.mark.parametrize(
    ("wire", "choice"),
    [
        ("none", ToolChoice(mode="none")),
        ("required", ToolChoice(mode="required")),
        ({"type": "function", "name": "f"}, ToolChoice(mode="named", name="f")),
        ({"type": "custom", "name": "c"}, ToolChoice(mode="named", name="c")),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}],
            },
            ToolChoice(mode="required", allowed=("f", "c")),
        ),
    ],
)
async def test_tool_choice(read, wire: Any, choice: ToolChoice) -> None:
    assert (await read(tools=[TOOL, CUSTOM], tool_choice=wire)).tool_choice == choice


async def test_a_custom_tool_is_a_strict_function_with_one_string(read) -> None:
    plain, exact = (await read(tools=[CUSTOM, {**grammar("regex"), "name": "d"}])).tools
    assert (plain.strict, exact.strict) == (True, True)
    assert plain.schema()["properties"] == {"input": {"type": "string"}}
    assert exact.schema()["properties"] == {"input": {"type": "string", "pattern": "^(?:a+)$"}}


async def test_a_lark_grammar_is_a_pattern_beside_the_text_that_the_model_is_shown(read) -> None:
    source = 'start: "a" start | "b"'
    (tool,) = (await read(tools=[grammar("lark", source)])).tools
    text = tool.schema()["properties"]["input"]
    assert (text["type"], text["pattern"]) == ("string", "^(?:(?:a)*b)$")
    assert source in text["description"]


async def test_a_lark_grammar_that_nests_goes_on_as_it_is(read) -> None:
    source = 'start: "(" start ")" | "x"'
    (tool,) = (await read(tools=[grammar("lark", source)])).tools
    assert tool.input_grammar == source
    assert "pattern" not in tool.schema()["properties"]["input"]


async def test_formats(read) -> None:
    assert (await read(text={"format": {"type": "text"}})).output_format == TextFormat()
    assert (await read(text={"format": {"type": "json_object"}})).output_format == JsonObjectFormat()
    schema = {"type": "json_schema", "name": "n", "strict": True, "schema": {"type": "object"}}
    found = (await read(text={"format": schema})).output_format
    assert (json.loads(found.schema), found.name, found.param) == (
        {"type": "object"},
        "n",
        "text.format.schema",
    )


async def test_logprobs_are_asked_for_in_two_ways(read) -> None:
    assert (await read()).sampling.logprobs is None
    assert (await read(top_logprobs=3)).sampling.logprobs == 3
    assert (await read(include=["message.output_text.logprobs"])).sampling.logprobs == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"type": "message", "content": "a"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input[0].call_id"),
        (
            {"input": [{"type": "function_call", "call_id": "1", "name": "f", "arguments": "["}]},
            "input[0].arguments",
        ),
        ({"input": [{"type": "custom_tool_call", "call_id": "1", "name": "f"}]}, "input[0].input"),
        ({"input": [{"type": "function_call_output", "output": "a"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "1"}]}, "input[0].output"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type `item_reference`"),
        ({"input": [{"type": "web_search_call"}]}, "input[0].type `web_search_call`"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{**TOOL, "parameters": []}]}, "tools[0].parameters"),
        ({"tools": [{**TOOL, "format": {"type": "text"}}]}, "tools[0].format"),
        ({"tools": [grammar("lark", "start: a")]}, "tools[0].format.definition"),
        ({"tools": [grammar("banana")]}, "tools[0].format.syntax"),
        ({"tools": [grammar("regex", None)]}, "tools[0].format.definition"),
        ({"tools": [TOOL], "tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"text": {"format": {"type": "banana"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "text", "schema": {}}}}, "text.format.schema"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"max_tokens": 5}, "max_tokens"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"json_schema": {}}, "json_schema"),
    ],
)
async def test_what_is_wrong_is_named_as_the_client_wrote_it(post, fields: Any, param: str) -> None:
    response = await post(**fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("tools[0].function.parameters", "tools[0].format.definition"),
        ("tools[1].function.parameters", "tools[1].parameters"),
        ("messages[0].content", "instructions"),
        ("messages[1].content", "input"),
        ("max_tokens", "max_output_tokens"),
        ("temperature", "temperature"),
    ],
)
async def test_what_is_found_further_down_is_named_so_too(api, post, found: str, told: str) -> None:
    def refuse(_request: object) -> Any:
        raise InterlockError("invalid_value", f"{found} is wrong", param=found)

    api.service.answer = refuse
    error = (await post(instructions="s", tools=[grammar("regex"), TOOL])).json()["error"]
    assert (error["param"], error["message"]) == (told, f"{told} is wrong")


async def test_what_is_asked_to_be_included_and_is_not_there_is_named(post) -> None:
    response = await post(include=["message.output_text.logprobs", "reasoning.encrypted_content"])
    assert response.headers["x-interlock-ignored"] == "include.reasoning.encrypted_content"


async def test_ignored_fields_are_named(post) -> None:
    response = await post(service_tier="auto", reasoning={"summary": "auto"}, text={"verbosity": "medium"})
    assert response.headers["x-interlock-ignored"] == "reasoning.summary, service_tier"
