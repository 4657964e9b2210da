"""Our own endpoints: tokens, what a request would run, whether a constraint can be held."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.constraint import Alternative, Choice, ConstraintSpec, JsonValue
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError, Problem

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SPEC = ConstraintSpec(root=Choice(("a", "b")))


@pytest.fixture
def post(api):
    async def send(path: str, status: int = 200, **fields: Any) -> Any:
        response = await api.client.post(path, json=fields)
        assert response.status_code == status, response.text
        return response.json()

    return send


async def test_text_to_tokens_and_back(post) -> None:
    body = await post("/tokenize", prompt="héy<|im_end|>", with_pieces=True)
    assert body["count"] == len(body["tokens"]) == 5
    assert body["pieces"][-1] == "<|im_end|>"
    assert (await post("/detokenize", tokens=body["tokens"]))["prompt"] == "héy<|im_end|>"


async def test_special_tokens_may_be_read_as_text(post) -> None:
    assert (await post("/tokenize", prompt="<|im_end|>", special_tokens=False))["count"] == 10


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"messages": []}, "messages"),
        ("/detokenize", {"tokens": "a"}, "tokens"),
        ("/detokenize", {"tokens": [1, 10**6]}, "tokens[1]"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]"),
        ("/v1/check", {"tools": [{"type": "x"}], "tool_choice": 5, "guided_json": {}}, "guided_json"),
    ],
)
async def test_what_is_wrong_is_named(post, path: str, fields: Any, param: str) -> None:
    assert (await post(path, 400, **fields))["error"]["param"] == param


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/v1/check"])
async def test_an_unknown_model_is_not_found(post, path: str) -> None:
    body = {"/tokenize": {"prompt": "a"}, "/detokenize": {"tokens": []}}.get(path, {})
    assert (await post(path, 404, model="nope", **body))["error"]["code"] == "model_not_found"


async def test_render_shows_prompt_constraint_and_tools(api, post) -> None:
    api.service.spec = SPEC
    tool = Tool(name="f")
    api.service.tools = ToolContext(
        effective_tools=(tool,),
        callable_tools=(tool,),
        tool_choice=ToolChoice(mode="required"),
        constrained=True,
        constrained_reason="tool_choice requires a call",
    )
    body = await post(
        "/v1/chat/completions/render", model="scripted", messages=[{"role": "user", "content": "Hi"}]
    )
    assert body["num_prompt_tokens"] == len(body["prompt_token_ids"])
    assert body["constraint"]["tree"] == SPEC.tree()
    assert body["constraint"]["spec"]["root"]["kind"] == "choice"
    assert body["tools"]["effective"][0]["parameters"] == tool.schema()
    assert (body["tools"]["callable"], body["tools"]["tool_choice"]["mode"]) == (["f"], "required")
    assert api.service.requests == []


async def test_a_constraint_that_holds_is_ok(api, post) -> None:
    api.service.spec, api.service.notes = SPEC, ("format is an annotation",)
    body = await post("/v1/check", json_schema={"type": "object"}, tools=[TOOL])
    assert (body["ok"], body["problems"], body["error"]) == (True, [], None)
    assert "format is an annotation" in body["notes"]
    assert body["constraint"]["tree"] == SPEC.tree()
    assert api.service.checked == [SPEC]
    assert body["enforced_by"] == {"masks": "interlock", "tokens": "interlock", "guards": "interlock"}


async def test_one_that_does_not_is_told_with_all_problems(api, post) -> None:
    api.service.spec = SPEC
    problem = Problem(reason="not supported", keyword="not", pointer="/not", tool="f")
    api.service.refusal = InterlockError("invalid_schema", "it cannot be held", problems=(problem,), hint="h")
    body = await post("/v1/check", tools=[TOOL])
    assert not body["ok"]
    assert body["problems"] == [{"keyword": "not", "pointer": "/not", "reason": "not supported", "tool": "f"}]
    assert (body["error"]["code"], body["error"]["hint"]) == ("invalid_schema", "h")


async def test_one_that_is_malformed_is_told_so(post) -> None:
    body = await post("/v1/check", response_format={"type": "json_schema"})
    assert (body["ok"], body["error"]["param"]) == (False, "response_format.json_schema")
    assert body["problems"][0]["reason"] == body["error"]["message"]


async def test_nothing_to_check_is_a_free_answer(post) -> None:
    body = await post("/v1/check")
    assert (body["ok"], body["constraint"], body["enforced_by"]) == (True, None, None)


async def test_each_schema_has_a_report_and_instances_are_for_the_answer(api, post) -> None:
    answer, tool = (
        JsonValue('{"type": "object"}', origin="schema"),
        JsonValue("{}", tool="f", origin="tools[0]"),
    )
    api.service.spec = ConstraintSpec(root=Alternative((answer, tool)))
    body = await post(
        "/v1/check",
        schema={"type": "object"},
        tools=[TOOL],
        instances=[{"b": 1.50}, [2]],
        documents={"http://example.com/x": {"type": "null"}},
    )
    assert [(item["param"], item["tool"], item["compiled"]) for item in body["schemas"]] == [
        ("schema", None, True),
        ("tools[0]", "f", True),
    ]
    documents = {"http://example.com/x": '{"type":"null"}'}
    assert api.service.reported == [(answer, ('{"b":1.5}', "[2]"), documents), (tool, (), documents)]


async def test_a_schema_beside_another_format_is_two_answers(post) -> None:
    body = await post("/v1/check", schema={}, json_schema={})
    assert (body["error"]["code"], body["error"]["param"]) == ("conflicting_parameters", "schema")
