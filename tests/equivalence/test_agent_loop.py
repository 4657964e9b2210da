"""A conversation on the embedded model: each token is computed about once, and the text is that of a cold cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from interlock.config import EngineConfig, LlamaCppConfig, TorchConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.providers.llguidance import LLGuidanceProvider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.engine.core import EngineCore
from interlock.runners.base import ModelRunner
from interlock.runners.registry import create_runner
from interlock.tokenization.load import describe

pytestmark = pytest.mark.model

SYSTEM = "You are an assistant with tools. " + " ".join(f"Tool {i} finds item number {i}." for i in range(8))
CALL = LoweredConstraint(provider="llguidance", grammar='start: "{\\"item\\": " /[0-9]{1,3}/ "}"', key="call")
NUM_TURNS = 3


@dataclass(frozen=True)
class Model:
    tokenizer: Tokenizer
    compiler: GrammarCompiler
    runner: ModelRunner


@pytest.fixture(scope="module", params=["llama_cpp", "torch"])
def model(request: pytest.FixtureRequest, demo_model: Path) -> Iterator[Model]:
    path = demo_model
    tokenizer = describe(demo_model).tokenizer
    if request.param == "torch":
        random_model = request.getfixturevalue("random_model")
        path = random_model(
            "LlamaConfig", vocab_size=49_152, initializer_range=0.3, max_position_embeddings=1024
        )
    config = EngineConfig(
        model=path,
        slots=2,
        context_tokens=1024,
        max_batch_tokens=128,
        llama_cpp=LlamaCppConfig(threads=1),
        torch=TorchConfig(device="cpu", threads=1),
    )
    runner = create_runner(config, tokenizer)
    compiler = GrammarCompiler(LLGuidanceProvider(tokenizer), GrammarCache(1 << 26))
    compiler.prepare(CALL).result(30)
    yield Model(tokenizer, compiler, runner)
    runner.close()


def agent_loop(model: Model, *, prefix_cache: bool) -> tuple[list[list[int]], int, int]:
    """Ids of each turn, prompt tokens computed, tokens of the whole conversation."""
    config = EngineConfig(model=Path("none"), mask_threads=1, prefix_cache=prefix_cache)
    core = EngineCore(model.runner, model.compiler, model.tokenizer.vocabulary, config)
    ids = list(model.tokenizer.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"))
    turns = []
    for turn in range(NUM_TURNS):
        question = f"<|im_start|>user\nFind item {turn}.<|im_end|>\n<|im_start|>assistant\n"
        ids += model.tokenizer.encode(question)
        core.submit(
            EngineRequest(
                request_id=f"t{turn}",
                prompt_ids=tuple(ids),
                sampling=SamplingParams(temperature=0.7, seed=turn),
                max_tokens=12,
                stop_ids=model.tokenizer.vocabulary.stop_ids,
                constraint=CALL if turn % 2 else None,
            )
        )
        said: list[int] = []
        while not core.is_empty:
            for output in core.step():
                said += output.token_ids
        core.check()
        turns.append(said)
        ids += [*said, *model.tokenizer.encode("<|im_end|>\n")]
    return turns, core.stats().num_prompt_tokens, len(ids)


def test_each_token_of_an_agent_loop_is_computed_about_once_and_the_text_is_the_same(model: Model):
    cold, num_cold, num_tokens = agent_loop(model, prefix_cache=False)
    warm, num_warm, _ = agent_loop(model, prefix_cache=True)
    assert warm == cold
    assert num_warm <= num_tokens < num_cold


def test_a_copied_prefix_gives_the_same_text(model: Model):
    """The second request begins as the first, which is still running, so its slot is copied."""
    ids = model.tokenizer.encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n")
    tails = ["<|im_start|>user\nHello<|im_end|>\n", "<|im_start|>user\nSay a number<|im_end|>\n"]
    said: dict[bool, list[list[int]]] = {}
    for prefix_cache in (False, True):
        config = EngineConfig(model=Path("none"), mask_threads=1, prefix_cache=prefix_cache)
        core = EngineCore(model.runner, model.compiler, model.tokenizer.vocabulary, config)
        outputs: dict[str, list[int]] = {tail: [] for tail in tails}
        for tail in tails:
            core.submit(
                EngineRequest(
                    request_id=tail,
                    prompt_ids=(*ids, *model.tokenizer.encode(tail)),
                    sampling=SamplingParams(temperature=0.0),
                    max_tokens=8,
                )
            )
        while not core.is_empty:
            for output in core.step():
                outputs[output.request_id] += output.token_ids
        said[prefix_cache] = list(outputs.values())
        assert core.stats().num_cached_tokens >= (len(ids) if prefix_cache else 0)
    assert said[True] == said[False]


def test_prompts_that_come_again_are_restored_and_give_the_same_text(model: Model):
    """Five prompts take turns on two slots, each twice; one of them goes on where its answer ended."""
    prompts = [tuple(model.tokenizer.encode(f"<|im_start|>user\n{i} {SYSTEM}<|im_end|>\n")) for i in range(5)]
    said: dict[bool, list[list[int]]] = {}
    for is_saved in (False, True):
        config = EngineConfig(
            model=Path("none"), mask_threads=1, prefix_cache=is_saved, prompt_cache_bytes=is_saved << 28
        )
        core = EngineCore(model.runner, model.compiler, model.tokenizer.vocabulary, config)
        outputs: dict[str, list[int]] = {}
        for i, ids in enumerate(prompts * 2):
            if i == 9:
                ids = (*ids, *outputs["4"], *prompts[0][:20])
            core.submit(
                EngineRequest(
                    request_id=str(i),
                    prompt_ids=ids,
                    sampling=SamplingParams(temperature=0.7, seed=i % 5),
                    max_tokens=6,
                    constraint=CALL if i % 2 else None,
                )
            )
            outputs[str(i)] = []
            while not core.is_empty:
                for output in core.step():
                    outputs[output.request_id] += output.token_ids
        said[is_saved] = list(outputs.values())
        core.check()
    assert said[True] == said[False]
    assert core.stats().num_states_restored >= 3
    assert core.stats().num_prompt_tokens <= sum(map(len, prompts)) + 5 + 30
