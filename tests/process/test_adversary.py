"""Models that want the wrong thing at every turn, over HTTP: what is promised comes, whatever they want.

All requests of a model run at once, free and constrained ones in one batch, streamed or not by turns; those that
concern the form of the answer both ways.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import jsonschema
import pytest

Call = tuple[str, dict[str, Any]]


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


WORD = {"type": "string", "pattern": "^[A-Za-z]{2,8}$"}
SCHEMAS = {
    "run": _object("command", command=WORD, timeout={"type": "integer", "minimum": 1, "maximum": 60}),
    "weather": _object("location", location=WORD, unit={"enum": ["celsius", "fahrenheit"]}),
    "search": _object("query", query=WORD),
    "label": _object("tags", tags={"type": "array", "items": WORD, "maxItems": 2}),
}
WRONG: dict[str, Call] = {
    "a field of another name": ("run", {"cmd": "ls"}),
    "no arguments": ("run", {}),
    "an unknown tool": ("walk", {"command": "ls"}),
    "a number out of range": ("run", {"command": "ls", "timeout": 600}),
    "a required field dropped": ("weather", {"unit": "celsius"}),
    "queries for query": ("search", {"queries": ["rome"]}),
    "a unit that is not listed": ("weather", {"location": "Rome", "unit": "kelvin"}),
    "a string for a list": ("label", {"tags": "red, blue"}),
}
TWO: list[Call] = [("run", {"command": "ls"}), ("weather", {"unit": "celsius", "location": "Rome"})]


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """say: what the model wants, of a ``Model``. body: fields of the request. check: (message, finish reason, model).
    needs: the property of a model without which there is no such case."""

    say: Callable[[Any], str]
    body: dict[str, Any]
    check: Callable[[dict[str, Any], str, Any], None]
    needs: str = "spell"
    options: dict[str, Any] = field(default_factory=dict)


def calls_of(message: dict[str, Any]) -> list[Call]:
    return [(name, json.loads(arguments)) for name, arguments in written_calls(message)]


def written_calls(message: dict[str, Any]) -> list[tuple[str, str]]:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return [(call["name"], call["arguments"]) for call in calls]


def is_valid(call: Call) -> bool:
    name, arguments = call
    return name in SCHEMAS and jsonschema.Draft202012Validator(SCHEMAS[name]).is_valid(arguments)


def one_valid(message: dict[str, Any], finish: str, _model: Any) -> None:
    (call,) = calls_of(message)
    assert is_valid(call), call
    assert finish == "tool_calls"
    assert not (message.get("content") or "").strip()


def as_wanted(call: Call) -> Callable[[dict[str, Any], str, Any], None]:
    def check(message: dict[str, Any], finish: str, model: Any) -> None:
        if model.bare and call[0] not in SCHEMAS:  # JSON that names no tool is an answer
            text_only(model.spell([call]))(message, finish, model)
            return
        assert calls_of(message) == [call]
        assert not is_valid(call)
        assert finish == "tool_calls"

    return check


def only_of(name: str) -> Callable[[dict[str, Any], str, Any], None]:
    def check(message: dict[str, Any], finish: str, model: Any) -> None:
        one_valid(message, finish, model)
        assert calls_of(message)[0][0] == name

    return check


def thought_and_call(message: dict[str, Any], finish: str, model: Any) -> None:
    one_valid(message, finish, model)
    assert message["reasoning_content"] == "I will."


def drafted(message: dict[str, Any], finish: str, model: Any) -> None:
    """The draft in the thought is no call: the mask holds back its marker, or the marker ends the thought."""
    one_valid(message, finish, model)
    assert message["reasoning_content"].startswith("Say:")


def both(message: dict[str, Any], finish: str, model: Any) -> None:
    assert calls_of(message) == (TWO if model.parallel else TWO[:1])
    assert finish == "tool_calls"


def first(message: dict[str, Any], finish: str, _model: Any) -> None:
    assert calls_of(message) == TWO[:1]
    assert finish == "tool_calls"


def cut_short(message: dict[str, Any], finish: str, model: Any) -> None:
    """After a few tokens: whatever is told as whole is whole."""
    wanted = TWO if model.parallel else TWO[:1]
    assert model.spell(wanted).strip().startswith((message.get("content") or "").strip())
    if finish == "tool_calls":
        assert calls_of(message) == wanted
        return
    assert finish == "length"
    for (name, text), call in zip(written_calls(message), wanted, strict=False):
        assert name == call[0]
        assert json.dumps(call[1]).startswith(text)


def budgeted(message: dict[str, Any], finish: str, model: Any) -> None:
    """The thought was ended by force, after which the turn holds what it must."""
    one_valid(message, finish, model)
    assert message["reasoning_content"].strip() == LONG[: len(message["reasoning_content"].strip())]
    assert 0 < len(message["reasoning_content"]) < len(LONG) / 2


def answered(message: dict[str, Any], finish: str, model: Any) -> None:
    assert is_valid(("run", json.loads(message["content"])))
    assert finish == "stop"
    assert 0 < len(message["reasoning_content"]) < len(LONG) / 2


def text_only(text: str) -> Callable[[dict[str, Any], str, Any], None]:
    def check(message: dict[str, Any], finish: str, _model: Any) -> None:
        assert not message.get("tool_calls")
        assert (message.get("content") or "") == text
        assert finish == "stop"

    return check


def answer(model: Any, text: str) -> str:
    return f"<|channel|>final<|message|>{text}" if model.vocabulary == "gptoss" else text


def thought(model: Any, text: str) -> str:
    return str(model.think).replace("{}", text)


LONG = " ".join(f"{number} and" for number in range(40))
TEXTS = ("content", "reasoning_content")
STRICT = {"strict": True}
ONE = {"parallel_tool_calls": False}
REQUIRED = {"tool_choice": "required", **ONE}
FREE = {"tool_constraints": "off"}


def named(name: str) -> dict[str, Any]:
    return {"tool_choice": {"type": "function", "function": {"name": name}}, **ONE}


BEHAVIOURS: dict[str, Behaviour] = {}
for _what, _call in WRONG.items():
    _say = lambda model, call=_call: model.spell([call])  # noqa: E731
    BEHAVIOURS |= {
        f"free: {_what}": Behaviour(say=_say, body=FREE, check=as_wanted(_call)),
        f"required: {_what}": Behaviour(say=_say, body=REQUIRED, check=one_valid),
        f"strict: {_what}": Behaviour(say=_say, body=ONE, options=STRICT, check=one_valid),
    }
    if _call[0] in SCHEMAS:
        BEHAVIOURS[f"named: {_what}"] = Behaviour(say=_say, body=named(_call[0]), check=only_of(_call[0]))
BEHAVIOURS |= {
    "named: an unknown tool": Behaviour(
        say=lambda model: model.spell([WRONG["an unknown tool"]]), body=named("search"), check=only_of("search")
    ),
    "required: an early end": Behaviour(say=lambda _: "", body=REQUIRED, check=one_valid),
    "named: an early end": Behaviour(say=lambda _: "", body=named("run"), check=only_of("run")),
    "strict: an early end": Behaviour(
        say=lambda model: answer(model, ""), body=ONE, options=STRICT, check=text_only("")
    ),
    "strict: an answer": Behaviour(
        say=lambda model: answer(model, "No need."), body={}, options=STRICT, check=text_only("No need.")
    ),
    "none: an answer": Behaviour(
        say=lambda model: answer(model, "Fine."), body={"tool_choice": "none"}, check=text_only("Fine.")
    ),
    "none: a call": Behaviour(
        say=lambda model: model.spell(TWO[:1]), body={"tool_choice": "none"}, check=text_only("")
    ),
    "free: two calls": Behaviour(say=lambda model: model.spell(TWO), body=FREE, check=both),
    "all: two calls": Behaviour(
        say=lambda model: model.spell(TWO), body={"tool_constraints": "all"}, check=both
    ),
    "free: two calls of one": Behaviour(say=lambda model: model.spell(TWO), body=FREE | ONE, check=first),
    "required: two calls of one": Behaviour(say=lambda model: model.spell(TWO), body=REQUIRED, check=first),
    "required: a thought": Behaviour(
        say=lambda model: thought(model, "I will.") + model.spell([WRONG["no arguments"]]),
        body=REQUIRED,
        check=thought_and_call,
        needs="think",
    ),
    "strict: a thought": Behaviour(
        say=lambda model: thought(model, "I will.") + model.spell([WRONG["a field of another name"]]),
        body=ONE,
        options=STRICT,
        check=thought_and_call,
        needs="think",
    ),
    "free: a call ends the thought": Behaviour(
        say=lambda model: model.think.split("{}")[0] + "Say: " + model.spell(TWO),
        body=FREE | {"thinking_budget": 9},
        check=both,
        needs="calls_end_thinking",
    ),
    "required: a thought without end": Behaviour(
        say=lambda model: thought(model, LONG) + model.spell(TWO[:1]),
        body=REQUIRED | {"thinking_budget": 12},
        check=budgeted,
        needs="think",
    ),
    "named: a thought without end": Behaviour(
        say=lambda model: thought(model, LONG) + model.spell(TWO[:1]),
        body=named("run") | {"thinking_budget": 12},
        check=budgeted,
        needs="think",
    ),
    "schema: a thought without end": Behaviour(
        say=lambda model: thought(model, LONG) + answer(model, '{"command": 1}'),
        body={
            "tools": None,
            "thinking_budget": 12,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMAS["run"]}},
        },
        check=answered,
        needs="think",
    ),
    "required: a call inside the thought": Behaviour(
        say=lambda model: thought(model, "Say: " + model.spell([("run", {"cmd": "x"})])) + model.spell(TWO[:1]),
        body=REQUIRED | {"thinking_budget": 12},
        check=drafted,
        needs="think",
    ),
}


BEHAVIOURS |= {
    f"{kind}: cut after {size}": Behaviour(
        say=lambda model: model.spell(TWO), body=body | {"max_tokens": size}, check=cut_short
    )
    for kind, body in (("free", FREE), ("all", {"tool_constraints": "all"}))
    for size in (1, 2, 3, 5, 8, 13, 16, 21, 34, 55)
}


def body_of(model: Any, model_name: str, key: str) -> dict[str, Any]:
    behaviour = BEHAVIOURS[key]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": schema, **behaviour.options}}
        for name, schema in SCHEMAS.items()
    ]
    thinks = behaviour.needs != "spell"
    switched = model.thinking if thinks else dict.fromkeys(model.thinking, False)
    return {
        "model": model_name,
        "messages": [{"role": "user", "content": f"[{key}]"}],
        "tools": tools,
        "temperature": 0,
        "max_tokens": 160,
        "chat_template_kwargs": switched,
        **behaviour.body,
    }


Answer = tuple[dict[str, Any], str]


def joined(lines: list[str]) -> Answer:
    """The message that a stream tells."""
    message: dict[str, Any] = {}
    finish = ""
    for line in lines:
        if not line.startswith("data: {"):
            continue
        chunk = json.loads(line[6:])
        assert "error" not in chunk, chunk
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            for name in TEXTS:
                if choice["delta"].get(name):
                    message[name] = message.get(name, "") + choice["delta"][name]
            for part in choice["delta"].get("tool_calls") or ():
                calls = message.setdefault("tool_calls", [])
                if part["index"] == len(calls):
                    calls.append({"function": {"name": part["function"]["name"], "arguments": ""}})
                calls[part["index"]]["function"]["arguments"] += part["function"].get("arguments") or ""
    return message, finish


async def ask(client: httpx.AsyncClient, body: dict[str, Any], stream: bool) -> Answer | str:
    """The answer, or what was wrong with it."""
    response = await client.post("/v1/chat/completions", json={**body, "stream": stream})
    if response.status_code != 200:
        return response.text
    if stream:
        return joined(response.text.splitlines())
    (choice,) = response.json()["choices"]
    return choice["message"], choice["finish_reason"]


def ways(key: str, number: int) -> tuple[bool, ...]:
    """Whether to stream: by turns for one wrong call among many, both for the others."""
    return (bool(number % 2),) if key.split(": ")[1] in WRONG else (False, True)


Answers = dict[tuple[str, bool], Answer | str]


@pytest.fixture(scope="module")
def answers(model_name: str, model: Any, serve_script: Any) -> Iterator[Answers]:
    """All behaviours of a model, streamed and not, asked at once."""
    wanted = [key for key, behaviour in BEHAVIOURS.items() if getattr(model, behaviour.needs)]

    async def everything(url: str) -> Answers:
        async with httpx.AsyncClient(base_url=url, timeout=120) as client:
            asked = [(key, stream) for number, key in enumerate(wanted) for stream in ways(key, number)]
            found = await asyncio.gather(
                *(ask(client, body_of(model, model_name, key), stream) for key, stream in asked)
            )
            return dict(zip(asked, found, strict=True))

    with serve_script({key: BEHAVIOURS[key].say(model) for key in wanted}) as url:
        yield asyncio.run(everything(url))


@pytest.mark.parametrize("key", BEHAVIOURS)
def test_what_is_promised_comes(key: str, model: Any, answers: Answers) -> None:
    behaviour = BEHAVIOURS[key]
    found = [told for stream in (False, True) if (told := answers.get((key, stream))) is not None]
    assert bool(found) is bool(getattr(model, behaviour.needs))
    for told in found:
        assert not isinstance(told, str), told
        behaviour.check(*told, model)
    messages = {
        json.dumps([*(told[0].get(name) or "" for name in TEXTS), written_calls(told[0])]) for told in found
    }
    assert len(messages) <= 1  # streamed and not, the same is told
