"""The processor in transformers' own ``generate``, over a small random model of the demo model's vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

from interlock import Model  # noqa: E402
from interlock.transformers import LogitsProcessor  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green"]}, "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}, "minItems": 1, "maxItems": 2}},
    "required": ["colour", "sizes"],
}  # fmt: skip
PAD = 0


@pytest.fixture(scope="module")
def model(demo_model: Path) -> Model:
    return Model.load(demo_model)


@pytest.fixture(scope="module")
def network() -> Any:
    """Two layers of noise; its vocabulary is wider than the tokenizer's, as those of many models are."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=49_280,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=PAD,
    )
    return transformers.LlamaForCausalLM(config).eval()


def generate(
    network: Any, model: Model, processor: LogitsProcessor, prompts: list[str], **settings: Any
) -> list[str]:
    """What stands behind each prompt, up to its first stop id; prompts are padded on the left."""
    encoded = [model.tokenizer.encode(prompt) for prompt in prompts]
    longest = max(map(len, encoded))
    ids = torch.tensor([[PAD] * (longest - len(one)) + one for one in encoded])
    stop_ids = list(model.tokenizer.vocabulary.stop_ids)
    output = network.generate(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        logits_processor=transformers.LogitsProcessorList([processor]),
        eos_token_id=stop_ids,
        pad_token_id=PAD,
        max_new_tokens=60,
        **settings,
    )
    answers = []
    for row in output[:, longest:].tolist():
        end = next(at for at, token_id in enumerate(row) if token_id in stop_ids)
        answers.append(model.tokenizer.decode(row[:end]))
    return answers


def is_valid(answer: str) -> bool:
    data = json.loads(answer)
    return data["colour"] in ("red", "green") and 1 <= len(data["sizes"]) <= 2


def test_each_prompt_of_a_batch_is_held_to_its_own_constraint(network: Any, model: Model):
    processor = LogitsProcessor([model.json_schema(SCHEMA), model.choice(["left", "right hand"])])
    first, second = generate(network, model, processor, ["A long prompt, to be padded: ", "x"], do_sample=False)
    assert is_valid(first)
    assert second in ("left", "right hand")


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": True, "num_return_sequences": 3, "temperature": 2.0},
        {"do_sample": False, "num_beams": 3, "num_return_sequences": 3},
    ],
    ids=["samples", "beams"],
)
def test_several_answers_to_a_prompt_are_followed_one_by_one(
    network: Any, model: Model, settings: dict[str, Any]
):
    torch.manual_seed(1)
    processor = LogitsProcessor(model.json_schema(SCHEMA))
    for _ in range(2):  # a processor is good for more than one generation
        answers = generate(network, model, processor, ["one: ", "another: "], **settings)
        assert len(answers) == 6
        assert all(is_valid(answer) for answer in answers)


def test_a_prompt_that_goes_on_from_the_last_generation_is_one(network: Any, model: Model):
    processor = LogitsProcessor(model.json_schema(SCHEMA))
    (first,) = generate(network, model, processor, ["x: "], do_sample=False)
    (second,) = generate(network, model, processor, [f"x: {first}, then: "], do_sample=False)
    assert is_valid(first)
    assert is_valid(second)


def test_drafts_of_an_assistant_that_are_refused_leave_no_trace(network: Any, model: Model):
    torch.manual_seed(8)
    assistant = transformers.LlamaForCausalLM(network.config).eval()
    constraint = model.json_schema(SCHEMA)
    alone = generate(network, model, LogitsProcessor(constraint), ["x: "], do_sample=False)
    assisted = generate(
        network, model, LogitsProcessor(constraint), ["x: "], do_sample=False, assistant_model=assistant
    )
    assert assisted == alone
    assert is_valid(alone[0])


def test_masks_hold_on_the_width_of_the_logits(model: Model):
    (only,) = model.tokenizer.encode("a")
    for width in (49_152, 49_280):
        scores = LogitsProcessor(model.choice(["a"]))(torch.tensor([[5, 6]]), torch.zeros(1, width))
        assert scores.isfinite().nonzero().tolist() == [[0, only]]
