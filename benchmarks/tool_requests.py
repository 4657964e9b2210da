"""Engine requests from the Berkeley function calling leaderboard's questions (the ``live_simple`` part)."""

from __future__ import annotations

import json
import lzma
from typing import Any

from common import ROOT
from interlock.config import GenerationDefaults
from interlock.constraints.lowering import lower
from interlock.core.engine import EngineRequest
from interlock.core.messages import Message
from interlock.core.output_format import TextFormat
from interlock.core.request import JsonPolicy
from interlock.core.sampling import SamplingParams
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families import registry
from interlock.families.wire.render import PromptRenderer
from interlock.resolve.constraint import resolve_constraint
from interlock.tokenization.description import ModelDescription

QUESTIONS = ROOT.parent / "shared" / "data" / "bfcl" / "BFCL_v4_live_simple.jsonl.xz"
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def tool_requests(description: ModelDescription, count: int, max_tokens: int) -> list[EngineRequest]:
    """The first ``count`` questions: greedy, one required call of the question's tool, arguments in any order."""
    with lzma.open(QUESTIONS, "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]
    return [_request(question, description, max_tokens) for question in questions]


def _request(question: dict[str, Any], description: ModelDescription, max_tokens: int) -> EngineRequest:
    family = registry.choose(description).family
    tokenizer = description.tokenizer
    tools = tuple(tool_of(function) for function in question["function"])
    messages = [Message(role=turn["role"], content=turn["content"]) for turn in question["question"][0]]
    prompt = PromptRenderer(family, description).render(messages, tools)
    spec = resolve_constraint(
        family,
        tools=ToolContext(
            initial_tools=tools,
            effective_tools=tools,
            callable_tools=tools,
            tool_choice=ToolChoice(mode="required"),
            parallel_tool_calls=False,
            constrained=True,
        ),
        output_format=TextFormat(),
        thinking=prompt.thinking,
        policy=JsonPolicy(),
        defaults=GenerationDefaults(),
    )
    assert spec is not None
    return EngineRequest(
        request_id=question["id"],
        prompt_ids=prompt.ids,
        sampling=SamplingParams(temperature=0.0),
        max_tokens=max_tokens,
        stop_ids=tokenizer.vocabulary.stop_ids,
        constraint=lower(spec, tokenizer.special_tokens),
    )


def all_functions() -> list[dict[str, Any]]:
    """Every different function of all parts of the leaderboard."""
    functions = {}
    for path in sorted(QUESTIONS.parent.glob("*.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                functions |= {json.dumps(function): function for function in json.loads(line)["function"]}
    return list(functions.values())


def tool_of(function: dict[str, Any]) -> Tool:
    return Tool(
        name=function["name"].replace(".", "_"),
        description=function["description"],
        parameters=json.dumps(json_schema(function["parameters"])),
    )


def json_schema(value: Any) -> Any:
    """The leaderboard's type names as JSON Schema's."""
    if isinstance(value, list):
        return [json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: json_schema(item) for key, item in value.items() if key != "default"}
    if isinstance(schema.get("type"), str) and schema["type"] in _TYPES:
        name = _TYPES[schema.pop("type")]
        return {"type": name, **schema} if name else schema
    return schema
