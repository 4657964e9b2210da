"""Forms of calls that frame their answers, over HTTP: Kimi K3, whose closer is several tokens, and Cohere's two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "pattern": "^[A-Za-z]{2,8}$"},
        "tags": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    },
    "required": ["command"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "run", "parameters": SCHEMA}}
RIGHT = ("run", {"command": "ls", "tags": [1, 2]})
WRONG = ("run", {"cmd": "ls"})
LONG = " ".join(f"{number} and" for number in range(40))
REQUIRED = {"tool_choice": "required", "parallel_tool_calls": False}
FREE = {"tool_constraints": "off"}
FORMAT = {
    "tools": None,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
}
BUDGET = {"thinking_budget": 12}

Told = tuple[dict[str, Any], str]


@pytest.fixture(scope="module", params=["kimi_k3", "cohere_command", "cohere_cofl"])
def model_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def scripts(model: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """What the model wants to say, and the request, by name."""
    thinks = lambda text: model.think.replace("{}", text)  # noqa: E731
    says = lambda text: model.answer.replace("{}", text)  # noqa: E731
    return {
        "free": (thinks("I will.") + model.spell([RIGHT, RIGHT]), FREE),
        "required": (thinks("I will.") + model.spell([WRONG]), REQUIRED),
        "endless": (thinks(LONG) + model.spell([RIGHT]), REQUIRED | BUDGET),
        "schema": (thinks(LONG) + says('{"command": 1}'), FORMAT | BUDGET),
        "answer": (thinks("Easy.") + says("No need."), FREE),
    }


@pytest.fixture(scope="module")
def told(model_name: str, model: Any, serve_script: Any) -> Iterator[dict[str, list[Told]]]:
    """Each answer, whole and as a stream."""
    wanted = scripts(model)

    def ask(client: httpx.Client, key: str, stream: bool) -> Told:
        body = {
            "model": model_name,
            "messages": [{"role": "user", "content": f"[{key}]"}],
            "tools": [TOOL],
            "temperature": 0,
            "max_tokens": 700,
            "chat_template_kwargs": model.thinking,
            "stream": stream,
        }
        response = client.post("/v1/chat/completions", json=body | wanted[key][1])
        assert response.status_code == 200, response.text
        if stream:
            return joined(response.text)
        (choice,) = response.json()["choices"]
        return choice["message"], choice["finish_reason"]

    with (
        serve_script({key: text for key, (text, _) in wanted.items()}) as url,
        httpx.Client(base_url=url, timeout=120) as client,
    ):
        yield {key: [ask(client, key, stream) for stream in (False, True)] for key in wanted}


def joined(text: str) -> Told:
    message: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": []}
    finish = ""
    for line in text.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            finish = choice["finish_reason"] or finish
            for name in ("content", "reasoning_content"):
                message[name] += choice["delta"].get(name) or ""
            for part in choice["delta"].get("tool_calls") or ():
                if part["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append(
                        {"function": {"name": part["function"]["name"], "arguments": ""}}
                    )
                function = message["tool_calls"][part["index"]]["function"]
                function["arguments"] += part["function"].get("arguments") or ""
    return message, finish


def calls(message: dict[str, Any]) -> list[tuple[str, Any]]:
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def is_valid(value: Any) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(value)


def test_streamed_and_not_the_same_is_told(told: dict[str, list[Told]]) -> None:
    for (whole, finish), (streamed, end) in told.values():
        assert finish == end
        assert calls(whole) == calls(streamed)
        for name in ("content", "reasoning_content"):
            assert (whole.get(name) or "") == streamed[name]


def test_free_calls_are_read_as_the_model_writes_them(told: dict[str, list[Told]]) -> None:
    message, finish = told["free"][0]
    assert calls(message) == [RIGHT, RIGHT]
    assert (message["reasoning_content"], message.get("content") or "") == ("I will.", "")
    assert finish == "tool_calls"


def test_a_call_that_must_come_is_valid(told: dict[str, list[Told]]) -> None:
    message, finish = told["required"][0]
    ((name, arguments),) = calls(message)
    assert name == "run"
    assert is_valid(arguments), arguments
    assert message["reasoning_content"] == "I will."
    assert not message.get("content")
    assert finish == "tool_calls"


def test_a_thought_without_end_is_closed_by_all_tokens_of_the_closer(told: dict[str, list[Told]]) -> None:
    message, finish = told["endless"][0]
    ((_, arguments),) = calls(message)
    assert is_valid(arguments), arguments
    assert finish == "tool_calls"
    assert not message.get("content")
    assert 0 < len(message["reasoning_content"]) <= BUDGET["thinking_budget"]
    assert LONG.startswith(message["reasoning_content"].strip())


def test_then_an_answer_fits_its_schema(told: dict[str, list[Told]]) -> None:
    message, finish = told["schema"][0]
    assert is_valid(json.loads(message["content"]))
    assert finish == "stop"
    assert LONG.startswith(message["reasoning_content"].strip())


def test_an_answer_comes_without_its_frame(told: dict[str, list[Told]]) -> None:
    message, finish = told["answer"][0]
    assert (message["content"], message["reasoning_content"]) == ("No need.", "Easy.")
    assert finish == "stop"
