"""The processor for llama-cpp-python, called the way it calls: test_llama_cpp.py does the same with the package."""

from __future__ import annotations

import numpy as np
import pytest

from interlock import InterlockError, Model
from interlock.llama_cpp import LogitsProcessor


def generate(processor: LogitsProcessor, model: Model, prompt: str, wished: str) -> str:
    """What a model that wishes to say ``wished`` says, the way llama-cpp-python calls its processors."""
    prompt_ids, wishes = model.tokenizer.encode(prompt), model.tokenizer.encode(wished)
    tokens, stop_ids = list(prompt_ids), model.tokenizer.vocabulary.stop_ids
    width = model.tokenizer.vocabulary.size + 5  # a model's logits may be wider
    for position in range(20):
        scores = np.zeros(width, np.single)
        scores[wishes[position] if position < len(wishes) else stop_ids[0]] = 1
        scores = processor(np.array(tokens, np.intc), scores)
        assert np.isneginf(scores[-5:]).all()
        assert not processor.check(np.array(tokens, np.intc))
        tokens.append(int(scores.argmax()))
        if tokens[-1] in stop_ids:
            break
    return model.tokenizer.decode(tokens[len(prompt_ids) : -1])


def test_the_processor_for_llama_cpp_python_holds_one_generation_after_another(model: Model):
    processor = LogitsProcessor(model.regex("[0-9]{3}"))
    assert generate(processor, model, "n: ", "12345") == "123"
    assert generate(processor, model, "another prompt: ", "9x8") == "908"  # the first of what is left
    assert generate(processor, model, "n: ", "5") == "500"


def test_a_prompt_that_goes_on_from_the_last_generation_is_one(model: Model):
    """As the turns of a conversation do."""
    processor = LogitsProcessor(model.regex("[0-9]{3}"))
    first = generate(processor, model, "n: ", "123")
    assert generate(processor, model, f"n: {first}, and n: ", "45") == "450"
    processor.restart()
    assert generate(processor, model, f"n: {first}, and n: 4", "6") == "600"


def test_a_free_turn_leaves_the_scores_alone(model: Model):
    turn = model.turn([{"role": "user", "content": "hi"}])
    scores = np.zeros(model.tokenizer.vocabulary.size, np.single)
    assert LogitsProcessor(turn)(np.array([1, 2], np.intc), scores) is scores


def call(processor: LogitsProcessor, model: Model, text: str) -> np.ndarray:
    """The scores behind a text, all of which were equal."""
    return processor(np.array(model.tokenizer.encode(text), np.intc), np.zeros(300, np.single))


def test_an_error_leaves_only_the_end_and_is_raised_where_it_is_not_lost(model: Model):
    """What a callback of native code raises is lost, and its scores are then taken as they are."""
    processor = LogitsProcessor(model.regex("[0-9]{3}"))
    call(processor, model, "n: ")
    ids, scores = np.array(model.tokenizer.encode("n: x"), np.intc), np.zeros(300, np.single)
    with pytest.raises(InterlockError, match="the constraint cannot go on"):
        processor(ids, scores)
    assert set(np.flatnonzero(scores == 0)) == set(model.tokenizer.vocabulary.stop_ids)
    assert np.isneginf(scores[scores != 0]).all()
    with pytest.raises(InterlockError, match="the constraint cannot go on"):
        processor.check(ids)
    assert not processor.check(ids)  # said once
    assert generate(processor, model, "n: ", "12345") == "123"


@pytest.mark.parametrize("ids_of_check", ["n: ", "n: 12"], ids=["never called", "called for other ids"])
def test_a_token_without_its_mask_is_an_error(model: Model, ids_of_check: str):
    processor = LogitsProcessor(model.regex("[0-9]{3}"))
    if ids_of_check != "n: ":
        call(processor, model, "n: 1")
    with pytest.raises(InterlockError, match="without its mask; logit_bias and draft_model"):
        processor.check(np.array(model.tokenizer.encode(ids_of_check), np.intc))


@pytest.mark.parametrize(
    ("text", "is_drafts"),
    [
        ("n: 45", True),
        ("n: 4, n: ", True),
        ("n: , n: ", False),
        ("n: <|im_end|>\nn: ", False),
        ("m: 45", False),
    ],
    ids=["drafts", "behind a cut answer", "another text", "behind an end", "another prompt"],
)
def test_drafts_that_nobody_has_accepted_are_not_taken_for_a_prompt(model: Model, text: str, is_drafts: bool):
    processor = LogitsProcessor(model.regex("[0-9]{3}"))
    call(processor, model, "n: ")
    if is_drafts:
        with pytest.raises(InterlockError, match="several tokens came at once"):
            call(processor, model, text)
        processor.restart()
    assert np.flatnonzero(call(processor, model, text) == 0).tolist() == [ord(digit) for digit in "0123456789"]
