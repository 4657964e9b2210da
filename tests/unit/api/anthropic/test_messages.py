"""Anthropic's messages to our own types and back, refusals by the client's names, errors in Anthropic's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.scripted import USAGE, ScriptedService, call, finish, text, thinking
from interlock.config import HttpConfig
from interlock.core.events import Failed, Finished, TextDelta
from interlock.core.messages import Message, ToolCall
from interlock.core.output_format import JsonSchemaFormat
from interlock.core.request import ReasoningOptions
from interlock.core.tools import Tool, ToolChoice
from interlock.errors import InterlockError, Problem

PATH = "/v1/messages"
SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"maximum": 1.50}}}
TOOL = {"name": "f", "input_schema": SCHEMA}
USER = {"role": "user", "content": "Hi"}


@pytest.fixture
def post(api):
    async def send(path: str = PATH, **fields: Any) -> Any:
        body = {"model": "scripted", "max_tokens": 50, "messages": [USER], **fields}
        return await api.client.post(path, json={key: value for key, value in body.items() if value is not ...})

    return send


@pytest.fixture
def read(api, post):
    """The request that a body becomes."""

    async def send(**fields: Any) -> Any:
        response = await post(**fields)
        assert response.status_code == 200, response.text
        return api.service.requests[-1]

    return send


@pytest.fixture
def refused(post):
    async def send(status: int = 400, **fields: Any) -> Any:
        response = await post(**fields)
        body = response.json()
        assert (response.status_code, body["type"]) == (status, "error"), response.text
        return body["error"]

    return send


# Requests


async def test_a_conversation_keeps_its_order_and_what_calls_say(read) -> None:
    request = await read(
        system=[{"type": "text", "text": "Be"}, {"type": "text", "text": "brief.", "cache_control": {}}],
        messages=[
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "tu_1", "name": "f", "input": {"b": 1.50, "a": [10**20]}},
                    {"type": "tool_use", "id": "tu_2", "name": "g", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "tu_2"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "tu_1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    },
                    {"type": "text", "text": "And"},
                    {"type": "text", "text": "now?"},
                ],
            },
            {"role": "system", "content": "Now in French."},
        ],
    )
    assert request.messages == (
        Message(role="system", content="Be\nbrief."),
        Message(role="user", content="Hi"),
        Message(
            role="assistant",
            content="I look.",
            reasoning="hm",
            tool_calls=(
                ToolCall(
                    id="tu_1",
                    name="f",
                    arguments='{"b":1.5,"a":[100000000000000000000]}',
                ),
                ToolCall(id="tu_2", name="g", arguments="{}"),
            ),
        ),
        Message(role="tool", content="", tool_call_id="tu_2"),
        Message(role="tool", content="Error: a\nb", tool_call_id="tu_1"),
        Message(role="user", content="And\nnow?"),
        Message(role="system", content="Now in French."),
    )


async def test_a_schema_is_kept_as_the_client_wrote_it(api) -> None:
    text = '{"type":"object","properties":{"b":{"maximum":1.50},"a":{}}}'
    body = (
        '{"model":"scripted","max_tokens":5,"messages":[{"role":"user","content":"Hi"}],'
        f'"tools":[{{"name":"f","strict":true,"description":"d","input_schema":{text}}}]}}'
    )
    await api.client.post(PATH, content=body)
    assert api.service.requests[-1].tools == (Tool(name="f", description="d", strict=True, parameters=text),)


@pytest.mark.parametrize(
    ("wire", "choice", "parallel"),
    [
        ({"type": "auto"}, ToolChoice(mode="auto"), None),
        ({"type": "any"}, ToolChoice(mode="required"), None),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice(mode="required"), False),
        ({"type": "tool", "name": "f"}, ToolChoice(mode="named", name="f"), None),
        ({"type": "none"}, ToolChoice(mode="none"), None),
    ],
)
async def test_tool_choice(read, wire: Any, choice: ToolChoice, parallel: bool | None) -> None:
    request = await read(tools=[TOOL], tool_choice=wire)
    assert (request.tool_choice, request.parallel_tool_calls) == (choice, parallel)


@pytest.mark.parametrize("name", ["output_format", "output_config"])
async def test_an_output_format_is_a_schema(read, name: str) -> None:
    format_ = {"type": "json_schema", "schema": SCHEMA}
    request = await read(**{name: format_ if name == "output_format" else {"format": format_}})
    assert isinstance(request.output_format, JsonSchemaFormat)
    assert json.loads(request.output_format.schema) == SCHEMA
    assert request.output_format.param.startswith(name)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ReasoningOptions()),
        ({"thinking": {"type": "disabled"}}, ReasoningOptions(enabled=False)),
        ({"thinking": {"type": "adaptive"}}, ReasoningOptions()),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, ReasoningOptions(enabled=True, budget=9)),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 9, "display": "omitted"}},
            ReasoningOptions(enabled=True, budget=9, include=False),
        ),
        ({"output_config": {"effort": "high"}}, ReasoningOptions(effort="high")),
    ],
)
async def test_thinking(read, fields: Any, expected: ReasoningOptions) -> None:
    assert (await read(**fields)).reasoning == expected


async def test_sampling_and_stop_sequences(read) -> None:
    request = await read(temperature=0.5, top_p=0.9, top_k=3, stop_sequences=["END"], seed=4)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.5, 0.9, 3, 4)
    assert (request.stop, request.max_tokens) == (("END",), 50)


async def test_empty_tools_are_no_tools(read) -> None:
    assert (await read(tools=[])).tools is None


async def test_ignored_fields_are_named(post) -> None:
    response = await post(metadata={"user_id": "u"}, tools=[{**TOOL, "cache_control": {"type": "ephemeral"}}])
    assert response.headers["x-interlock-ignored"] == "metadata, tools[].cache_control"


def blocks(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(content)}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": ...}, "max_tokens"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        (blocks({"type": "image", "source": {}}), "messages[0].content[0]"),
        (blocks({"type": "text", "text": "a"}, {"type": "document"}), "messages[0].content[1]"),
        (blocks({"type": "text"}), "messages[0].content[0].text"),
        (blocks({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (
            blocks({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}),
            "messages[0].content[0].content[0]",
        ),
        (blocks({"type": "tool_use", "name": "f", "input": {}}, role="assistant"), "messages[0].content[0].id"),
        (
            blocks({"type": "tool_use", "id": "t", "name": "f", "input": []}, role="assistant"),
            "messages[0].content[0].input",
        ),
        (blocks({"type": "redacted_thinking", "data": "x"}, role="assistant"), "messages[0].content[0]"),
        ({"tool_choice": {"type": "tool"}, "tools": [TOOL]}, "tool_choice.name"),
        ({"tool_choice": {"type": "any", "name": "f"}, "tools": [TOOL]}, "tool_choice.name"),
        ({"tool_choice": {"type": "banana"}}, "tool_choice.type"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tools": [{"name": "f", "input_schema": []}]}, "tools[0].input_schema"),
        ({"tools": [{"type": "tool_search_tool_bm25_20251119", "name": "s"}]}, "tools[0].type"),
        (
            blocks({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference"}]}),
            "messages[0].content[0].content[0].tool_name",
        ),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 50}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 5}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "between_tools"}}, "thinking.type"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"output_config": {"format": {"type": "json_schema", "schema": 1}}}, "output_config.format.schema"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"interlock": {"white": 1}}, "interlock.white"),
    ],
)
async def test_what_is_wrong_is_named_as_the_client_wrote_it(refused, fields: Any, param: str) -> None:
    error = await refused(**fields)
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param


async def test_a_tools_result_may_load_deferred_tools(read) -> None:
    found = [{"type": "text", "text": "Found:"}, {"type": "tool_reference", "tool_name": "f"}]
    request = await read(
        tools=[{"name": "find", "input_schema": {"type": "object"}}, {**TOOL, "defer_loading": True}],
        messages=[
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": found}]},
        ],
    )
    assert [(tool.name, tool.deferred) for tool in request.tools] == [("find", False), ("f", True)]
    assert (request.messages[-1].content, request.messages[-1].loads) == ("Found:", ("f",))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ("tools[0].function.parameters", "tools[0].input_schema"),
        ("tools[0].function.name", "tools[0].name"),
        ("messages[0].content", "system"),
        ("messages[2].tool_call_id", "messages[0].content[1].tool_use_id"),
        ("stop", "stop_sequences"),
        ("thinking_budget", "thinking.budget_tokens"),
        ("enable_thinking", "thinking"),
        ("temperature", "temperature"),
    ],
)
async def test_what_is_found_further_down_is_named_so_too(api, refused, found: str, told: str) -> None:
    def refuse(_request: object) -> Any:
        raise InterlockError("invalid_value", f"{found} is wrong", param=found, problems=(Problem(reason="r"),))

    api.service.answer = refuse
    conversation = [
        {"type": "text", "text": "a"},
        {"type": "tool_result", "tool_use_id": "t"},
    ]
    error = await refused(system="s", messages=[{"role": "user", "content": conversation}, USER])
    assert (error["param"], error["message"]) == (told, f"{told} is wrong")
    assert error["problems"][0]["reason"] == "r"


# Answers


@pytest.mark.parametrize(
    ("script", "reason", "sequence"),
    [
        (text("a"), "end_turn", None),
        (text("a", reason="length"), "max_tokens", None),
        ([*call("f", ["{}"]), *finish()], "tool_use", None),
        ([TextDelta(text="a"), Finished(reason="stop", usage=USAGE, stop_string="E")], "stop_sequence", "E"),
        ([TextDelta(text="a"), Finished(reason="length", usage=USAGE, stop_string="E")], "max_tokens", None),
    ],
)
async def test_stop_reasons(api, post, script: Any, reason: str, sequence: str | None) -> None:
    api.service.answer = lambda _: script
    whole = (await post()).json()
    assert (whole["stop_reason"], whole["stop_sequence"]) == (reason, sequence)
    delta = next(
        event for event in streamed((await post(stream=True)).text) if event["type"] == "message_delta"
    )
    assert delta["delta"] == {"stop_reason": reason, "stop_sequence": sequence}


def streamed(body: str) -> list[Any]:
    events = []
    for event in body.split("\n\n")[:-1]:
        name, data = event.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


async def test_blocks_have_consecutive_indices_and_one_is_open_at_a_time(api, post) -> None:
    api.service.answer = lambda _: [
        *thinking("a", "b"),
        TextDelta(text="c"),
        *call("f", ["{}"]),
        *call("g", ["{", "}"], index=1),
        TextDelta(text="d"),
        *finish(),
    ]
    events = streamed((await post(stream=True)).text)
    assert [event["type"] for event in events[:2]] == ["message_start", "ping"]
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    kinds, opened = [], None
    for event in events[2:-2]:
        if event["type"] == "content_block_start":
            assert opened is None
            opened = event["index"]
            assert opened == len(kinds)
            kinds.append(event["content_block"]["type"])
        else:
            assert event["index"] == opened
            opened = None if event["type"] == "content_block_stop" else opened
    assert kinds == ["thinking", "text", "tool_use", "tool_use", "text"]
    whole = (await post()).json()["content"]
    assert [block["type"] for block in whole] == kinds
    assert whole[0]["thinking"] == "ab"


async def test_the_input_of_a_call_is_as_the_model_spelt_it(api, post) -> None:
    api.service.answer = lambda _: [*call("f", ['{"n": 1.50, "m": 10000', "0000000000000000}"]), *finish()]
    assert '"input":{"n": 1.50, "m": 100000000000000000000}' in (await post()).text


async def test_an_answer_that_the_server_gave_up_is_an_error(api, refused) -> None:
    api.service.answer = lambda _: [Finished(reason="abort", usage=USAGE)]
    assert (await refused(529))["type"] == "overloaded_error"


async def test_count_tokens(api, post) -> None:
    response = await post("/v1/messages/count_tokens", max_tokens=..., tools=[TOOL], system="s")
    assert response.json() == {"input_tokens": USAGE.prompt_tokens}
    assert api.service.requests == []


# Errors


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("model_not_found", 404, "not_found_error"),
        ("invalid_schema", 400, "invalid_request_error"),
        ("request_timeout", 504, "timeout_error"),
        ("overloaded", 529, "overloaded_error"),
        ("not_ready", 529, "overloaded_error"),
        ("worker_died", 500, "api_error"),
        ("internal_error", 500, "api_error"),
    ],
)
async def test_statuses(api, refused, code: str, status: int, kind: str) -> None:
    api.service.answer = lambda _: [Failed(error=InterlockError(code, "it is wrong"))]
    assert (await refused(status))["type"] == kind


async def test_what_the_framework_refuses_has_the_same_shape(make_api) -> None:
    api = make_api(http=HttpConfig(api_keys=("k",)))
    headers = {"x-api-key": "k"}
    assert (await api.client.post(PATH, content=b"[]", headers=headers)).json()["type"] == "error"
    assert (await api.client.get(PATH, headers=headers)).json()["type"] == "error"
    assert (await api.client.post(f"{PATH}/x", headers=headers)).json()["error"]["type"] == "not_found_error"
    denied = await api.client.post(PATH, json={})
    assert (denied.status_code, denied.json()["error"]["type"]) == (401, "authentication_error")


async def test_a_fault_of_the_server_has_the_same_shape(make_api, monkeypatch) -> None:
    service = ScriptedService()
    monkeypatch.setattr(service, "start", None)
    api = make_api(service)
    response = await api.client.post(PATH, json={"model": "scripted", "max_tokens": 5, "messages": [USER]})
    assert (response.status_code, response.json()["error"]["type"]) == (500, "api_error")
