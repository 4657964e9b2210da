"""Families on the vocabularies of their own models: what the model writes naturally is legal and read back."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Provider
from interlock.constraints.providers.registry import create_provider
from interlock.core.events import ReasoningDelta, ToolCallArguments, ToolCallStart
from interlock.core.output_format import TextFormat
from interlock.core.tokenizer import Tokenizer
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.families.base import Thinking
from interlock.families.registry import by_name
from interlock.families.wire.constrain import constrain
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls
from interlock.tokenization.hf import hf_tokenizer

# family: the vocabulary it is tried on
MODELS = {
    "qwen3": "qwen3",
    "qwen3_coder": "qwen3",
    "kimi_k2": "qwen3",
    "kimi_k3": "qwen3",
    "minimax_m3": "qwen3",
    "deepseek_v3_2": "deepseek_v4",
    "deepseek_v4": "deepseek_v4",
    "deepseek_r1": "deepseek_v4",
    "harmony": "gptoss",
    "llama3": "llama3_1",
    "gemma4": "gemma3",
}
# What ends a turn; and tokens of families whose own vocabulary is not at hand.
TURN_ENDS = {
    "qwen3": "<|im_end|>",
    "deepseek_v4": "<｜end▁of▁sentence｜>",
    "gptoss": "<|return|>",
    "llama3_1": "<|eot_id|>",
    "gemma3": "<turn|>",
}
ADDED = {
    "qwen3": (
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
        "<|open|>",
        "<|close|>",
        "<|sep|>",
        "]<]minimax[>[",
    ),
    "gemma3": ("<|tool_call>", "<tool_call|>", "<|channel>", "<channel|>", '<|"|>', "<turn|>"),
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer", "minimum": 1, "maximum": 600},
        "env": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["command"],
}
TOOLS = (Tool(name="run", parameters=json.dumps(SCHEMA)), Tool(name="run_all"))
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("run", {"command": 'ls -l | grep "æ"\ncd ..', "timeout": 30}),
    ("run_all", {}),
    ("run", {"command": "x", "env": ["A=1", "B"]}),
]


@pytest.fixture(scope="module")
def vocabulary(shared: Path) -> Callable[[str], tuple[Tokenizer, Provider]]:
    @cache
    def load(name: str) -> tuple[Tokenizer, Provider]:
        packed = (shared / "data/tokenizers" / name / "tokenizer.json.xz").read_bytes()
        data = json.loads(lzma.decompress(packed))
        first = 1 + max(max(data["model"]["vocab"].values()), *(token["id"] for token in data["added_tokens"]))
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for number, content in enumerate(ADDED.get(name, ())):
            data["added_tokens"].append({"id": first + number, "content": content, **flags})
        tokenizer = hf_tokenizer(json.dumps(data), turn_ends=[TURN_ENDS[name]])
        return tokenizer, create_provider("llguidance", tokenizer)

    return load


@pytest.mark.parametrize("family_name", MODELS)
def test_natural_tokens_are_legal_and_read_back(
    family_name: str, vocabulary: Callable[[str], tuple[Tokenizer, Provider]]
) -> None:
    family = by_name(family_name)
    tokenizer, provider = vocabulary(MODELS[family_name])
    syntax, answer, format_ = family.tool_calls, family.answer, family.reasoning
    calls = CALLS[:1] if syntax.single else CALLS
    body = answer.open + answer.close if answer and answer.leads_always else ""
    body += (syntax.lead if syntax.always_leads else "") + spell_calls(syntax, calls)
    body += answer.turn_close if answer else ""
    thought = ""
    if format_ is not None:
        thought = f"{format_.open}{format_.after_open}I will run it.{format_.before_close}{format_.close}{format_.resume}"
        thought += format_.after_close
    for mode, before in (("required", ""), ("required", thought), ("auto", thought)):
        turn = _Turn(family_name, tokenizer, provider, mode)
        turn.push(tokenizer.encode(before + body))
        assert turn.matcher.is_accepting
        assert turn.calls() == calls
        assert turn.thought() == ("I will run it." if before else "")


@pytest.mark.parametrize(
    "family_name", ["qwen3_coder", "deepseek_v4", "kimi_k2", "gemma4", "harmony", "llama3"]
)
def test_what_a_model_must_not_write_is_masked(
    family_name: str, vocabulary: Callable[[str], tuple[Tokenizer, Provider]]
) -> None:
    """A field of another name, a missing field, an unknown tool, a wrong type: none of it can be completed."""
    family = by_name(family_name)
    tokenizer, provider = vocabulary(MODELS[family_name])
    for name, arguments in (
        ("run", {"cmd": "ls"}),
        ("run", {}),
        ("run", {"command": "ls", "timeout": 0}),
        ("run", {"command": "ls", "timeout": "soon"}),
        ("walk", {"command": "ls"}),
    ):
        turn = _Turn(family_name, tokenizer, provider, "required")
        syntax = family.tool_calls
        text = (syntax.lead if syntax.always_leads else "") + spell_calls(syntax, [(name, arguments)])
        ids = tokenizer.encode(text)
        legal = turn.matcher.validate(ids)
        if legal == len(ids):
            turn.push(ids)
            assert not turn.matcher.is_accepting, (name, arguments)


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>commentary--final<|message|>",
        "<|channel|>fin<|message|>",
        "<|channel|>commentary to=functions.run<|channel|>",
        "<|channel|>commentary to=functions.runjson<|message|>",
        "<|channel|>commentary to=run",
    ],
)
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_header_that_says_nothing_known_is_masked(
    text: str, mode: str, vocabulary: Callable[[str], tuple[Tokenizer, Provider]]
) -> None:
    tokenizer, provider = vocabulary("gptoss")
    ids = tokenizer.encode(text)
    assert _Turn("harmony", tokenizer, provider, mode).matcher.validate(ids) < len(ids)


class _Turn:
    def __init__(self, family_name: str, tokenizer: Tokenizer, provider: Provider, mode: Any) -> None:
        family = by_name(family_name)
        thinking: Thinking = "optional" if family.reasoning else "none"
        context = ToolContext(
            effective_tools=TOOLS, callable_tools=TOOLS, tool_choice=ToolChoice(mode=mode), constrained=True
        )
        spec = constrain(family, tools=context, output_format=TextFormat(), thinking=thinking)
        assert spec is not None
        self.matcher = provider.compile(lower(spec, tokenizer.special_tokens).grammar).matcher()
        self._spellings = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
        self._tokens = tokenizer.vocabulary.tokens
        self._parser = StreamParser(
            family, special_tokens=self._spellings, thinking=thinking, tools="parse", declared=TOOLS
        )
        self._events: list[Any] = []

    def push(self, ids: list[int]) -> None:
        held = b""
        for token_id in ids:
            self.matcher.accept(token_id)
            if token_id in self._spellings:
                self._events += self._parser.push_token(token_id, self._spellings[token_id])
                continue
            held += self._tokens[token_id]
            try:
                text, held = held.decode(), b""
            except UnicodeDecodeError:
                continue
            self._events += self._parser.push_text(text)
        self._events += self._parser.finish(truncated=True)

    def calls(self) -> list[tuple[str, Any]]:
        starts = [event for event in self._events if isinstance(event, ToolCallStart)]
        arguments = ["" for _ in starts]
        for event in self._events:
            if isinstance(event, ToolCallArguments):
                arguments[event.index] += event.text
        return [(start.name, json.loads(arguments[start.index])) for start in starts]

    def thought(self) -> str:
        return "".join(event.text for event in self._events if isinstance(event, ReasoningDelta))
