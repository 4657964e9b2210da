"""Each architecture through the slotted cache says what transformers says without one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
transformers = pytest.importorskip("transformers", reason="needs the extra torch")

from interlock.config import EngineConfig, TorchConfig  # noqa: E402
from interlock.core.sampling import SamplingParams  # noqa: E402
from interlock.errors import InterlockError  # noqa: E402
from interlock.runners.base import ForwardError, ModelRunner, StepBatch  # noqa: E402
from interlock.runners.torch import attention  # noqa: E402
from interlock.runners.torch.attention import slotted_attention  # noqa: E402
from interlock.runners.torch.load import load_model  # noqa: E402
from interlock.runners.torch.runner import TorchRunner  # noqa: E402
from interlock.sampling.base import SamplingRow  # noqa: E402

VOCAB_SIZE = 256
IDS = np.random.default_rng(0).integers(3, VOCAB_SIZE, 60).tolist()
WINDOW = {"head_dim": 16, "sliding_window": 8}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
DYNAMIC_ROPE = {
    "rope_type": "dynamic",
    "factor": 2.0,
    "rope_theta": 1e4,
    "original_max_position_embeddings": 100,
}
ARCHITECTURES = {
    "LlamaConfig": {},
    "Qwen2Config": {},
    "Qwen3Config": {"head_dim": 16},
    "Qwen3MoeConfig": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    "GemmaConfig": {"head_dim": 16},
    "Gemma2Config": WINDOW,  # scores have a soft cap
    "Gemma3TextConfig": WINDOW,
    "MistralConfig": WINDOW,
    "GptOssConfig": {**WINDOW, **EXPERTS},  # attention has a sink
}


def config_of(folder: Path, **torch_options: object) -> EngineConfig:
    options = {"device": "cpu", "threads": 1, **torch_options}
    return EngineConfig(
        model=folder, slots=4, context_tokens=256, max_batch_tokens=256, torch=TorchConfig(**options)
    )


def runner_of(config: EngineConfig) -> TorchRunner:
    return TorchRunner(config, max_default_context_tokens=8192)


def logprobs(runner: ModelRunner, *parts: tuple[int, int, int]) -> list[dict[int, float]]:
    """Of every token of the parts: (slot, from, to) in ``IDS``."""
    batch = StepBatch(
        token_ids=np.concatenate([np.array(IDS[start:end], np.int32) for _, start, end in parts]),
        positions=np.concatenate([np.arange(start, end, dtype=np.int32) for _, start, end in parts]),
        slots=np.concatenate([np.full(end - start, slot, np.int32) for slot, start, end in parts]),
        logits_at=np.arange(sum(end - start for _, start, end in parts), dtype=np.int32),
    )
    row = SamplingRow(
        params=SamplingParams(temperature=0.0, logprobs=VOCAB_SIZE), position=0, vocab_size=VOCAB_SIZE
    )
    choices = runner.launch(batch).select([row] * len(batch.logits_at)).choices
    return [dict(choice.logprob.top) for choice in choices if choice.logprob is not None]


@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_token_of_every_pass_has_the_logits_of_the_whole_text(random_model, name, static_shapes):
    folder = random_model(name, **ARCHITECTURES[name])
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    with torch.inference_mode():
        expected = torch.log_softmax(network(torch.tensor([IDS])).logits[0].float(), -1).numpy()
    runner = runner_of(config_of(folder, static_shapes=static_shapes))
    found = logprobs(runner, (0, 0, 30), (1, 0, 20))  # a prefill of two
    found += logprobs(runner, (0, 30, 31), (1, 20, 21))  # a token each
    found += logprobs(runner, (0, 31, 36), (1, 21, 22))  # a draft beside a token
    found += logprobs(runner, (0, 36, 60), (1, 22, 23))  # a chunk beside a token
    runner.close()
    places = [*range(30), *range(20), 30, 20, *range(31, 36), 21, *range(36, 60), 22]
    for place, row in zip(places, found, strict=True):
        assert np.allclose([row[one] for one in range(VOCAB_SIZE)], expected[place], atol=1e-4), place


REFUSED = {
    "no cache that can be cut": ("MambaConfig", {}),
    "layers of kind chunked_attention": ("Llama4TextConfig", {"head_dim": 16, "num_local_experts": 2}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_computed_rightly_is_refused(random_model, reason):
    name, fields = REFUSED[reason]
    with pytest.raises(InterlockError, match=reason):
        runner_of(config_of(random_model(name, **fields)))


def test_folders_and_devices_that_are_none_are_named(random_model, tmp_path):
    with pytest.raises(InterlockError, match=r"no folder with a config\.json"):
        runner_of(config_of(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "none of them"}')
    with pytest.raises(InterlockError, match=r"config\.json of .* cannot be used"):
        runner_of(config_of(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(InterlockError, match="cannot be loaded"):
        runner_of(config_of(tmp_path))
    with pytest.raises(InterlockError, match="torch has no device 'gpu'"):
        runner_of(config_of(random_model("LlamaConfig"), device="gpu"))


def test_context_limits(random_model):
    folder = random_model("LlamaConfig")
    with pytest.raises(InterlockError, match="made for 512"):
        runner_of(dataclasses.replace(config_of(folder), context_tokens=1024))
    runner = TorchRunner(
        dataclasses.replace(config_of(folder), context_tokens=0), max_default_context_tokens=300
    )
    assert runner.info.context_tokens == 300
    runner.close()


def test_a_model_whose_positions_depend_on_the_longest_text_is_held_below_that(random_model):
    folder = random_model("LlamaConfig", rope_parameters=DYNAMIC_ROPE)
    runner = runner_of(dataclasses.replace(config_of(folder), context_tokens=0))
    assert runner.info.context_tokens == 100
    runner.close()


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("LlamaConfig", {}, ""),
        ("Qwen3MoeConfig", ARCHITECTURES["Qwen3MoeConfig"], ""),
        ("LlamaConfig", {"rope_parameters": DYNAMIC_ROPE}, "positions"),
    ],
)
def test_what_no_graph_can_hold_is_known_before_one_is_made(random_model, name, fields, reason):
    config = dataclasses.replace(config_of(random_model(name, **fields)), context_tokens=0)
    found = load_model(config, 8192).looks_back
    assert reason in found
    assert bool(reason) == bool(found)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_of_sixteen_bits(random_model, dtype):
    runner = runner_of(config_of(random_model("Qwen3Config", head_dim=16), dtype=dtype))
    assert f"(cpu, {dtype})" in runner.info.name
    (_, last) = logprobs(runner, (0, 0, 1), (1, 0, 1))
    assert len(last) == VOCAB_SIZE
    runner.close()


def test_a_failed_pass_empties_its_slots_and_the_runner_goes_on(random_model, monkeypatch):
    runner = runner_of(config_of(random_model("LlamaConfig")))
    logprobs(runner, (0, 0, 5), (1, 0, 5))
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise RuntimeError("out of order")

        patch.setattr(runner._forward, "run", fail)
        with pytest.raises(ForwardError, match="out of order"):
            logprobs(runner, (0, 5, 6))
    assert logprobs(runner, (0, 0, 5))[4] == logprobs(runner, (2, 0, 5))[4]
    assert logprobs(runner, (1, 5, 6))
    runner.close()
    runner.close()
    with pytest.raises(ValueError, match="closed"):
        runner.truncate(0, 0)


def test_a_feature_of_attention_that_is_not_known_is_refused_at_load(random_model, monkeypatch):
    def with_a_bias(module, query, key, value, mask, **others):
        return slotted_attention(module, query, key, value, mask, position_bias=query, **others)

    monkeypatch.setattr(attention, "slotted_attention", with_a_bias)
    with pytest.raises(InterlockError, match="takes position_bias"):
        runner_of(config_of(random_model("LlamaConfig")))


def test_a_compiled_model_says_the_same(random_model, monkeypatch):
    """Traced, and run without a compiler, which would take a minute."""
    folder = random_model("LlamaConfig")
    with pytest.raises(InterlockError, match="needs steps of fixed shapes"):
        runner_of(config_of(folder, compile=True))
    plain = runner_of(config_of(folder, static_shapes=True))
    compile_ = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda network, **options: compile_(network, backend="eager", **options)
    )
    compiled = runner_of(config_of(folder, static_shapes=True, compile=True))
    for parts in (((0, 0, 4), (1, 0, 4)), ((0, 4, 5), (1, 4, 5))):
        assert logprobs(compiled, *parts) == logprobs(plain, *parts)
    plain.close()
    compiled.close()
