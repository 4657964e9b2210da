"""One core under all surfaces: the same request, asked in four dialects, is the same prompt under the same constraint,
and the same tokens are the same thinking, text, calls and ending."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import httpx
import pytest

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA}
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
MAX_TOKENS = 200


class Seen(NamedTuple):
    """What a client got: thinking, text, calls, and whether the answer is whole."""

    thinking: str
    text: str
    calls: list[tuple[str, Any]]
    whole: bool


class Ask(NamedTuple):
    """What is asked, in no dialect. choice: a mode, or ``named``."""

    choice: str | None = None
    strict: bool = False
    schema: bool = False
    one_call: bool = False
    max_tokens: int = MAX_TOKENS


def chat(ask: Ask) -> dict[str, Any]:
    named = {"type": "function", "function": {"name": "f"}}
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": ask.max_tokens}
    if ask.choice:
        body["tools"] = [{"type": "function", "function": {**FUNCTION, "strict": ask.strict}}]
        body["tool_choice"] = named if ask.choice == "named" else ask.choice
        body["parallel_tool_calls"] = not ask.one_call
    if ask.schema:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    return body


def responses(ask: Ask) -> dict[str, Any]:
    body: dict[str, Any] = {"input": "Hi", "max_output_tokens": ask.max_tokens}
    if ask.choice:
        body["tools"] = [{"type": "function", **FUNCTION, "strict": ask.strict}]
        body["tool_choice"] = {"type": "function", "name": "f"} if ask.choice == "named" else ask.choice
        body["parallel_tool_calls"] = not ask.one_call
    if ask.schema:
        body["text"] = {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}
    return body


def messages(ask: Ask) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": ask.max_tokens}
    if ask.choice:
        kinds = {"named": {"type": "tool", "name": "f"}, "required": {"type": "any"}}
        body["tools"] = [{"name": "f", "description": "d", "input_schema": SCHEMA, "strict": ask.strict}]
        body["tool_choice"] = {
            **kinds.get(ask.choice, {"type": ask.choice}),
            "disable_parallel_tool_use": ask.one_call,
        }
    if ask.schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": SCHEMA}}
    return body


def ollama(ask: Ask) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "stream": False}
    body["options"] = {"num_predict": ask.max_tokens}
    if ask.choice:
        body["tools"] = [{"type": "function", "function": {**FUNCTION, "strict": ask.strict}}]
    return {**body, "format": SCHEMA} if ask.schema else body


def seen_chat(body: Any) -> Seen:
    (choice,) = body["choices"]
    message = choice["message"]
    cut = body.get("interlock", {}).get("incomplete_tool_calls", [])
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for index, call in enumerate(message.get("tool_calls", []))
        if index not in cut
    ]
    whole = choice["finish_reason"] != "length"
    return Seen(message.get("reasoning_content", ""), message["content"] or "", calls, whole)


def seen_responses(body: Any) -> Seen:
    parts: dict[str, list[Any]] = {"reasoning": [], "message": [], "function_call": []}
    for item in body["output"]:
        parts[item["type"]].append(item)
    texts = {
        kind: "".join(item["content"][0]["text"] for item in parts[kind]) for kind in ("reasoning", "message")
    }
    calls = [
        (item["name"], json.loads(item["arguments"]))
        for item in parts["function_call"]
        if item["status"] == "completed"
    ]
    return Seen(texts["reasoning"], texts["message"], calls, body["status"] == "completed")


def seen_messages(body: Any) -> Seen:
    def joined(kind: str) -> str:
        return "".join(block[kind] for block in body["content"] if block["type"] == kind)

    calls = [(block["name"], block["input"]) for block in body["content"] if block["type"] == "tool_use"]
    return Seen(joined("thinking"), joined("text"), calls, body["stop_reason"] != "max_tokens")


def seen_ollama(body: Any) -> Seen:
    message = body["message"]
    calls = [
        (call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])
    ]
    return Seen(message.get("thinking", ""), message["content"], calls, body["done_reason"] != "length")


SURFACES: dict[str, tuple[Callable[[Ask], dict[str, Any]], Callable[[Any], Seen]]] = {
    "/v1/chat/completions": (chat, seen_chat),
    "/v1/responses": (responses, seen_responses),
    "/v1/messages": (messages, seen_messages),
    "/api/chat": (ollama, seen_ollama),
}
TEXTS = [
    "Hello",
    "<think>\nhm\n</think>\n\nHello",
    CALL,
    f"<think>\nhm\n</think>\n\nLook.\n{CALL}\n{CALL}",
    '{"a": 1}',
]
ASKS = [
    Ask(),
    Ask(schema=True),
    Ask("auto"),
    Ask("auto", strict=True),
    Ask("auto", schema=True),
    Ask("required"),
    Ask("required", one_call=True),
    Ask("named"),
    Ask("none"),
    Ask("auto", max_tokens=40),
    Ask(max_tokens=3),
]
OLLAMA_CAN_SAY = ("auto", None)


@pytest.fixture
async def answers(stack) -> AsyncIterator[Callable[[Ask], Awaitable[dict[str, Any]]]]:
    """By path: the engine's request without what is random, and what the client saw."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:

        async def ask_all(ask: Ask) -> dict[str, Any]:
            found = {}
            for path, (write, see) in SURFACES.items():
                if path == "/api/chat" and ask.choice not in OLLAMA_CAN_SAY:
                    continue
                response = await client.post(path, json={"model": "m", **write(ask)})
                assert response.status_code == 200, response.text
                request = stack.engine.requests[-1]
                tree = request.constraint and stack.pool.specs[-1].tree()
                found[path] = (request.prompt_ids, tree, request.max_tokens, see(response.json()))
            return found

        yield ask_all


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("ask", ASKS, ids=str)
async def test_every_surface_is_the_same_request_and_answer(stack, answers, ask: Ask, text: str) -> None:
    stack.text = text
    found = await answers(ask)
    first = found["/v1/chat/completions"]
    assert {path: other for path, other in found.items() if other != first} == {}


THINKING_TEMPLATE = """\
{%- for message in messages %}{{ message.content }}<|im_end|>{% endfor -%}
{%- if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"""
SWITCHES: dict[str, dict[bool, dict[str, Any]]] = {
    "/v1/chat/completions": {on: {"chat_template_kwargs": {"enable_thinking": on}} for on in (True, False)},
    "/v1/responses": {True: {"reasoning": {"effort": "high"}}, False: {"reasoning": {"effort": "none"}}},
    "/v1/messages": {
        True: {"thinking": {"type": "enabled", "budget_tokens": 50}},
        False: {"thinking": {"type": "disabled"}},
    },
    "/api/chat": {True: {"think": True}, False: {"think": False}},
}


@pytest.mark.parametrize("thinking", [None, True, False])
@pytest.mark.parametrize("path", SURFACES)
async def test_thinking_on_off_or_unsaid_leaves_the_constraint_and_is_never_the_answer(
    new_stack, path: str, thinking: bool | None
) -> None:
    stack = new_stack(template=THINKING_TEMPLATE)
    await stack.service.lifecycle.start()
    write, see = SURFACES[path]
    switch = {} if thinking is None else SWITCHES[path][thinking]
    calls = Ask("auto", strict=True) if path == "/api/chat" else Ask("required")
    thought = "" if thinking is False else "hm"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://test") as client:
        for ask, said, text, called in (
            (Ask(schema=True), '{"a": 1}', '{"a": 1}', []),
            (calls, CALL, "", [("f", {"a": 1})]),
        ):
            stack.text = f"<think>\nhm\n</think>\n\n{said}" if thought else said
            response = await client.post(path, json={"model": "m", **write(ask), **switch})
            assert response.status_code == 200, response.text
            assert see(response.json()) == Seen(thought, text, called, whole=True)
            assert stack.engine.requests[-1].constraint is not None
            tree = str(stack.pool.specs[-1].tree())
            assert "integer" in tree
            assert ("Marker '</think>'" in tree) is (thinking is not False)
    await stack.service.lifecycle.stop()
