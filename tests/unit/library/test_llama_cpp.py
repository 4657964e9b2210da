"""The processor in llama-cpp-python's own completions, on the embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

llama_cpp = pytest.importorskip("llama_cpp", reason="the extra llama-cpp-python is not installed")

from interlock import Model  # noqa: E402
from interlock.llama_cpp import LogitsProcessor  # noqa: E402

pytestmark = pytest.mark.model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "sights": {"type": "integer", "minimum": 1, "maximum": 20}},
    "required": ["city", "sights"],
}  # fmt: skip


@pytest.fixture(scope="module")
def model(demo_model: Path) -> Model:
    return Model.load(demo_model)


@pytest.fixture(scope="module")
def llama(demo_model: Path) -> Iterator[Any]:
    loaded = llama_cpp.Llama(str(demo_model), n_ctx=512, n_threads=1, verbose=False)
    yield loaded
    loaded.close()


def complete(
    llama: Any, model: Model, prompt: str, processor: LogitsProcessor, **fields: Any
) -> dict[str, Any]:
    processors = llama_cpp.LogitsProcessorList([processor])
    ids = list(model.tokenizer.encode(prompt))
    (choice,) = llama.create_completion(ids, max_tokens=60, logits_processor=processors, **fields)["choices"]
    return dict(choice)


def test_one_processor_holds_one_answer_after_another(llama: Any, model: Model):
    processor = LogitsProcessor(model.json_schema(SCHEMA))
    for seed, prompt in enumerate(("The sights of Paris: ", "Rome: ", "Rome: ")):
        answer = complete(llama, model, prompt, processor, temperature=1.5, seed=seed)
        jsonschema.validate(json.loads(answer["text"]), SCHEMA)
        assert answer["finish_reason"] == "stop"


def test_a_turn_is_held_to_its_call(llama: Any, model: Model):
    tool = {"type": "function", "function": {"name": "visit", "parameters": SCHEMA}}
    turn = model.turn(
        [{"role": "user", "content": "Visit Rome."}],
        tools=[tool],
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=60,
    )
    processors = llama_cpp.LogitsProcessorList([LogitsProcessor(turn)])
    said = llama.create_completion(
        list(turn.prompt_ids), max_tokens=turn.max_tokens, temperature=0, logits_processor=processors
    )
    parser = turn.parser()
    parser.push(model.tokenizer.encode(said["choices"][0]["text"]))
    parser.finish("stop")
    (call,) = parser.answer.calls
    assert call.name == "visit"
    jsonschema.validate(json.loads(call.arguments_text), SCHEMA)
