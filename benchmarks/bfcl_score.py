"""Questions of the Berkeley function calling leaderboard, and how an answer to one is judged."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import jsonschema

from tool_requests import tool_of

Call = tuple[str, Any]
_ABSENT = ""  # among the accepted values of a parameter: it may be left out


@dataclass(frozen=True, slots=True)
class Question:
    """schemas: parameters by tool. expected: for each call its tool, and the accepted values by parameter."""

    id: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    schemas: dict[str, Any]
    expected: list[tuple[str, dict[str, list[Any]]]]


def questions(folder: Path, category: str, most: int) -> list[Question]:
    """At most ``most`` questions of a category, evenly spread over it."""
    lines = _lines(folder / f"BFCL_v4_{category}.jsonl.xz")
    asked = [lines[index * len(lines) // most] for index in range(most)] if most < len(lines) else lines
    truths = {
        line["id"]: line["ground_truth"] for line in _lines(folder / "answers" / f"BFCL_v4_{category}.jsonl.xz")
    }
    return [_question(line, truths[line["id"]]) for line in asked]


def is_valid(question: Question, call: Call) -> bool:
    """The call is of a tool of the question, and its arguments fit the tool's schema and invent no parameter."""
    name, arguments = call
    if name not in question.schemas or not isinstance(arguments, dict):
        return False
    schema = question.schemas[name]
    known = schema.get("properties", {})
    return jsonschema.Draft202012Validator(schema).is_valid(arguments) and all(
        key in known for key in arguments
    )


def is_right(question: Question, calls: Sequence[Call]) -> bool:
    """The calls are those expected, in any order."""
    expected = question.expected
    return len(calls) == len(expected) and any(
        all(_is_one(call, truth) for call, truth in zip(order, expected, strict=True))
        for order in permutations(calls)
    )


def _is_one(call: Call, truth: tuple[str, dict[str, list[Any]]]) -> bool:
    (name, arguments), (tool, accepted) = call, truth
    return name == tool and isinstance(arguments, dict) and _members(arguments, accepted)


def _members(arguments: dict[str, Any], accepted: dict[str, list[Any]]) -> bool:
    return all(
        any(_same(arguments[key], value) for value in values) if key in arguments else _ABSENT in values
        for key, values in accepted.items()
    ) and all(key in accepted for key in arguments)


def _same(found: Any, accepted: Any) -> bool:
    """As the leaderboard compares: texts without case, spaces and punctuation, whole numbers also as floats."""
    if isinstance(found, str) and isinstance(accepted, str):
        return _plain(found) == _plain(accepted)
    if isinstance(found, bool) or isinstance(accepted, bool):
        return found is accepted
    if isinstance(found, dict) and isinstance(accepted, dict):
        return _members(
            found, {key: value if isinstance(value, list) else [value] for key, value in accepted.items()}
        )
    if isinstance(found, list) and isinstance(accepted, list):
        return len(found) == len(accepted) and all(map(_same, found, accepted))
    return bool(found == accepted)


def _plain(text: str) -> str:
    return "".join(char for char in text.lower() if char not in " ,./-_*^'\"")


def _question(line: dict[str, Any], truth: list[dict[str, Any]]) -> Question:
    tools = [tool_of(function) for function in line["function"]]
    return Question(
        id=line["id"],
        messages=line["question"][0],
        tools=[
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema()},
            }
            for tool in tools
        ],
        schemas={tool.name: tool.schema() for tool in tools},
        expected=[(name.replace(".", "_"), values) for call in truth for name, values in call.items()],
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
