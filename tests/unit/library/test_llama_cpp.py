"""The processor in llama-cpp-python's own completions, on the embedded model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

llama_cpp = pytest.importorskip("llama_cpp", reason="the extra llama-cpp-python is not installed")

from llama_cpp.llama_speculative import LlamaPromptLookupDecoding  # noqa: E402

from interlock import InterlockError, Model  # noqa: E402
from interlock.llama_cpp import LogitsProcessor  # noqa: E402

pytestmark = pytest.mark.model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "sights": {"type": "integer", "minimum": 1, "maximum": 20}},
    "required": ["city", "sights"],
}  # fmt: skip
USER = [{"role": "user", "content": "Visit Rome."}]
TOOL = {"type": "function", "function": {"name": "visit", "parameters": SCHEMA}}


@pytest.fixture(scope="module")
def model(demo_model: Path) -> Model:
    return Model.load(demo_model)


@contextmanager
def loaded(demo_model: Path, **fields: Any) -> Iterator[Any]:
    llama = llama_cpp.Llama(str(demo_model), n_ctx=512, n_threads=1, verbose=False, **fields)
    yield llama
    llama.close()


@pytest.fixture(scope="module")
def llama(demo_model: Path) -> Iterator[Any]:
    with loaded(demo_model) as llama:
        yield llama


def complete(
    llama: Any, model: Model, prompt: str | list[int], processor: LogitsProcessor, **fields: Any
) -> Any:
    """The only choice of a completion; greedy, with at most 60 tokens, unless ``fields`` say otherwise."""
    ids = model.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
    asked = {"max_tokens": 60, "temperature": 0.0, **fields}
    completion = llama.create_completion(
        list(ids),
        logits_processor=llama_cpp.LogitsProcessorList([processor]),
        stopping_criteria=processor.check,
        **asked,
    )
    (choice,) = completion["choices"]
    return choice


def test_one_processor_holds_one_answer_after_another(llama: Any, model: Model):
    processor = LogitsProcessor(model.json_schema(SCHEMA))
    for seed, prompt in enumerate(("The sights of Paris: ", "Rome: ", "Rome: ")):
        answer = complete(llama, model, prompt, processor, temperature=1.5, seed=seed)
        jsonschema.validate(json.loads(answer["text"]), SCHEMA)
        assert answer["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.3}]
)
def test_a_pattern_is_held_whatever_the_sampling(llama: Any, model: Model, sampling: dict[str, Any]):  # fmt: skip
    answer = complete(
        llama, model, "The year was ", LogitsProcessor(model.regex("[12][0-9]{3}")), seed=1, **sampling
    )
    assert re.fullmatch("[12][0-9]{3}", answer["text"])
    assert answer["finish_reason"] == "stop"


def test_a_turn_is_held_to_its_call(llama: Any, model: Model):
    turn = model.turn(USER, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=60)
    answer = complete(llama, model, list(turn.prompt_ids), LogitsProcessor(turn), max_tokens=turn.max_tokens)
    parser = turn.parser()
    parser.push(model.tokenizer.encode(answer["text"]))
    parser.finish("stop")
    (call,) = parser.answer.calls
    assert call.name == "visit"
    jsonschema.validate(json.loads(call.arguments_text), SCHEMA)


def test_a_free_turn_says_what_the_model_says(llama: Any, model: Model):
    turn = model.turn(USER)
    ids = list(turn.prompt_ids)
    (alone,) = llama.create_completion(ids, max_tokens=12, temperature=0.0)["choices"]
    assert complete(llama, model, ids, LogitsProcessor(turn), max_tokens=12) == alone


def test_a_prompt_that_goes_on_from_an_answer_is_a_new_one(llama: Any, model: Model):
    """llama-cpp-python keeps the cache of what both share."""
    processor = LogitsProcessor(model.choice(["Rome", "Paris"]))
    prompt = "Rome or Paris: "
    first = complete(llama, model, prompt, processor)["text"]
    second = complete(llama, model, f"{prompt}{first}\nRome or Paris: ", processor)["text"]
    assert {first, second} <= {"Rome", "Paris"}


def test_an_answer_that_is_cut_or_left_leaves_nothing_behind(llama: Any, model: Model):
    processor = LogitsProcessor(model.json_schema(SCHEMA))
    whole = complete(llama, model, "Rome: ", processor)
    cut = complete(llama, model, "Rome: ", processor, max_tokens=3)
    assert (cut["finish_reason"], whole["text"].startswith(cut["text"])) == ("length", True)
    ids = model.tokenizer.encode("Rome: ")
    chunks = llama.create_completion(
        ids, max_tokens=60, temperature=0.0, logits_processor=[processor], stopping_criteria=processor.check, stream=True
    )  # fmt: skip
    assert whole["text"].startswith(next(chunks)["choices"][0]["text"])
    chunks.close()
    assert complete(llama, model, "Rome: ", processor) == whole


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # that is where it would be lost
def test_an_error_of_the_processor_reaches_the_caller(
    llama: Any, model: Model, monkeypatch: pytest.MonkeyPatch
):
    processor = LogitsProcessor(model.json_schema(SCHEMA))

    def fail(_outputs: object) -> None:
        raise InterlockError("matcher_failed", "out of fuel")

    with monkeypatch.context() as patch:
        patch.setattr(processor._masks, "fill", fail)
        with pytest.raises(InterlockError, match="out of fuel"):
            complete(llama, model, "Rome: ", processor)
        ids = model.tokenizer.encode("Rome: ")
        unchecked = llama.create_completion(ids, max_tokens=60, logits_processor=[processor])
        assert unchecked["choices"][0]["text"] == ""
    jsonschema.validate(json.loads(complete(llama, model, "Rome: ", processor)["text"]), SCHEMA)


def test_a_bias_which_makes_llama_cpp_python_forget_processors_is_an_error(llama: Any, model: Model):
    with pytest.raises(InterlockError, match="logit_bias and draft_model cannot be used"):
        complete(llama, model, "Rome: ", LogitsProcessor(model.json_schema(SCHEMA)), logit_bias={5: 1.0})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_drafts_of_llama_cpp_python_are_an_error(demo_model: Path, model: Model):
    """It shows them to processors before they are accepted."""
    processor = LogitsProcessor(model.regex("(1234 ?){3,9}"))
    drafts = LlamaPromptLookupDecoding(num_pred_tokens=4)
    with (
        loaded(demo_model, draft_model=drafts, logits_all=True) as llama,
        pytest.raises(InterlockError, match="several tokens came at once"),
    ):
        complete(llama, model, "Say 1234 1234 1234 ", processor)
