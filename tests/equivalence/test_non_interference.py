"""A turn that was valid when free is the same when constrained, token for token: on vocabularies of real models, for the
tokens that a model likes best as for any other way to cut its text, with forced tokens and guesses and without."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.config import EngineConfig, SpeculativeConfig
from interlock.constraints.cache import GrammarCache
from interlock.constraints.compiler import GrammarCompiler
from interlock.constraints.lowering import lower
from interlock.constraints.providers.registry import create_provider
from interlock.core.constraint import LoweredConstraint
from interlock.core.engine import EngineRequest
from interlock.core.output_format import TextFormat
from interlock.core.sampling import SamplingParams
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.engine.core import EngineCore
from interlock.engine.drafting.registry import create_speculator
from interlock.families.base import ModelFamily
from interlock.families.registry import by_name
from interlock.families.wire.constrain import constrain
from interlock.families.wire.spell import spell_calls
from interlock.runners.fake import FakeRunner, Prefix
from interlock.tokenization.hf import hf_tokenizer

# family: its vocabulary, what ends its turns, tokens that it has and the vocabulary at hand lacks
MODELS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "qwen3": ("qwen3", "<|im_end|>", ()),
    "qwen3_coder": ("qwen3", "<|im_end|>", ()),
    "deepseek_v4": ("deepseek_v4", "<｜end▁of▁sentence｜>", ()),
    "gemma4": (
        "gemma3",
        "<turn|>",
        ("<|tool_call>", "<tool_call|>", "<|channel>", "<channel|>", '<|"|>', "<turn|>"),
    ),
    "harmony": ("gptoss", "<|return|>", ()),
    "llama3": ("llama3_1", "<|eot_id|>", ()),
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer", "minimum": 1, "maximum": 600},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "env": {"type": "array", "items": {"type": "string"}},
        "where": {
            "type": "object",
            "properties": {"line": {"type": "integer"}, "file": {"type": "string"}},
            "required": ["line"],
            "additionalProperties": False,
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}
TOOLS = (
    Tool(name="run", parameters=json.dumps(SCHEMA)),
    Tool(name="run_all", parameters='{"type": "object", "properties": {}}'),
)
WORDS = st.sampled_from(
    ["ls", ' -l | grep "æ"', "\n", "cd ..  ", "a, b", "{}", "'x'", "東京", "\\d+", "}}", ""]
)
TEXT = st.lists(WORDS, max_size=4).map("".join)
RUN = st.fixed_dictionaries(
    {"command": TEXT},
    optional={
        "timeout": st.integers(1, 600),
        "unit": st.sampled_from(["celsius", "fahrenheit"]),
        "env": st.lists(TEXT, max_size=2),
        "where": st.fixed_dictionaries({"line": st.integers(-99, 9999)}, optional={"file": TEXT}),
    },
)
CALLS = st.lists(
    RUN.map(lambda arguments: ("run", arguments)) | st.just(("run_all", {})), min_size=1, max_size=2
)

NO_CALLS: st.SearchStrategy[list[tuple[str, Any]]] = st.just([])
THOUGHTS = st.sampled_from(["", "I will: {x}."])
ANSWERS = st.sampled_from(["", "Well, <I> run it:"])


class Model:
    """A vocabulary, and the constraint of a turn with tools that may be called."""

    def __init__(self, name: str, shared: Path) -> None:
        vocabulary, stop, added = MODELS[name]
        packed = (shared / "data/tokenizers" / vocabulary / "tokenizer.json.xz").read_bytes()
        data = json.loads(lzma.decompress(packed))
        first = 1 + max(max(data["model"]["vocab"].values()), *(token["id"] for token in data["added_tokens"]))
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for number, content in enumerate(added):
            data["added_tokens"].append({"id": first + number, "content": content, **flags})
        self.family: ModelFamily = by_name(name)
        self.tokenizer: Tokenizer = hf_tokenizer(json.dumps(data), turn_ends=[stop])
        context = ToolContext(
            effective_tools=TOOLS, callable_tools=TOOLS, tool_choice=ToolChoice(mode="auto"), constrained=True
        )
        thinking: Any = "optional" if self.family.reasoning else "none"
        spec = constrain(self.family, tools=context, output_format=TextFormat(), thinking=thinking)
        assert spec is not None
        self.constraint: LoweredConstraint = lower(spec, self.tokenizer.special_tokens)
        provider = create_provider("llguidance", self.tokenizer)
        self.compiler = GrammarCompiler(provider, GrammarCache(1 << 26))
        self.compiler.prepare(self.constraint).result(60)
        self.compiled = provider.compile(self.constraint.grammar)
        self.by_text = {text: i for i, text in enumerate(self.tokenizer.vocabulary.tokens) if text}
        self.longest = max(map(len, self.by_text))

    def turn(self, calls: list[tuple[str, Any]], thought: str, answer: str) -> str:
        """What the model writes of its own: a thought, an answer, calls."""
        syntax, format_, framed = self.family.tool_calls, self.family.reasoning, self.family.answer
        text = ""
        if framed is not None and not calls:
            answer = answer or "Well."  # where an answer is a message of its own, a turn has one
        if format_ is not None and thought:
            text += f"{format_.open}{format_.after_open}{thought}{format_.before_close}{format_.close}{format_.resume}"
            text += format_.after_close if calls or answer else ""
        if framed is not None and answer:
            text += (
                framed.lead_open + answer + framed.lead_close if calls else framed.open + answer + framed.close
            )
        elif answer and not (calls and syntax.bare):
            text += answer + (syntax.lead if calls else "")
        elif syntax.always_leads and calls:
            text += syntax.lead
        kept = calls[:1] if syntax.single else calls
        return text + (spell_calls(syntax, kept) if kept else "")

    def cut(self, text: str, chance: random.Random) -> list[int]:
        """Some other tokens for the same text; special tokens stay whole."""
        ids: list[int] = []
        special = self.tokenizer.vocabulary.special_ids
        for token in self.tokenizer.encode(text):
            if token in special:
                ids.append(token)
                continue
            rest = self.tokenizer.vocabulary.tokens[token]
            while rest:
                sizes = [
                    size for size in range(1, min(len(rest), self.longest) + 1) if rest[:size] in self.by_text
                ]
                size = chance.choice(sizes)
                found = self.by_text[rest[:size]]
                ids.append(found if found not in special else token)
                rest = rest[size:]
        return ids


@pytest.fixture(scope="module")
def models(shared: Path) -> Callable[[str], Model]:
    return cache(lambda name: Model(name, shared))


class Wish:
    """Logits of a model that wants ``ids`` after the prompt."""

    def __init__(self, size: int, num_prompt: int, ids: Sequence[int]) -> None:
        self._size, self._num_prompt, self._ids = size, num_prompt, list(ids)

    def row(self, prefix: Prefix) -> np.ndarray[Any, np.dtype[np.float32]]:
        row = np.zeros(self._size, np.float32)
        said = list(prefix.ids())[self._num_prompt :]
        if said == self._ids[: len(said)] and len(said) < len(self._ids):
            row[self._ids[len(said)]] = 50.0
        return row


def generate(
    model: Model, ids: Sequence[int], constraint: LoweredConstraint | None, **config: Any
) -> tuple[int, ...]:
    vocabulary = model.tokenizer.vocabulary
    prompt = tuple(model.tokenizer.encode("Go:"))
    logits = Wish(vocabulary.size, len(prompt), [*ids, vocabulary.stop_ids[0]])
    runner = FakeRunner(vocabulary.size, logits=logits, slots=1, max_batch_tokens=64, context_tokens=600)
    settings_ = EngineConfig(model=Path("none"), mask_threads=1, slots=1, **config)
    speculator = create_speculator(settings_, runner.info, model.tokenizer, None)  # type: ignore[arg-type]
    core = EngineCore(runner, model.compiler, vocabulary, settings_, speculator=speculator)
    core.submit(
        EngineRequest(
            request_id="x",
            prompt_ids=prompt,
            sampling=SamplingParams(temperature=0.0),
            max_tokens=len(ids) + 8,
            stop_ids=vocabulary.stop_ids,
            constraint=constraint,
        )
    )
    out: list[int] = []
    while not core.is_empty:
        for output in core.step():
            assert output.failure is None, output.failure
            out += output.token_ids
    return tuple(out)


LOOSE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=12, suppress_health_check=LOOSE, deadline=None)
@given(calls=CALLS | NO_CALLS, thought=THOUGHTS, answer=ANSWERS, data=st.data())
def test_any_tokens_of_a_valid_turn_are_legal(
    name: str, calls: Any, thought: str, answer: str, data: st.DataObject, models: Callable[[str], Model]
) -> None:
    model = models(name)
    text = model.turn(calls, thought, answer)
    seed = data.draw(st.integers(0, 9))
    ids = model.tokenizer.encode(text) if seed == 0 else model.cut(text, random.Random(seed))
    matcher = model.compiled.matcher()
    legal = matcher.validate(ids)
    assert legal == len(ids), (text, model.tokenizer.decode(ids[:legal]))
    for token in ids:
        matcher.accept(token)
    assert matcher.is_accepting, text


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, suppress_health_check=LOOSE, deadline=None)
@given(calls=CALLS | NO_CALLS, thought=THOUGHTS, answer=ANSWERS, forced=st.booleans(), guessed=st.booleans())
def test_a_valid_turn_is_generated_as_if_it_were_free(
    name: str,
    calls: Any,
    thought: str,
    answer: str,
    forced: bool,
    guessed: bool,
    models: Callable[[str], Model],
) -> None:
    model = models(name)
    options: dict[str, Any] = {"forced_tokens": forced}
    if guessed:
        options["speculative"] = SpeculativeConfig(methods=("skeleton", "ngram"), adaptive=False)
    text = model.turn(calls, thought, answer)
    ids = tuple(model.tokenizer.encode(text))
    assert generate(model, ids, None) == ids
    assert generate(model, ids, model.constraint, **options) == ids, text
