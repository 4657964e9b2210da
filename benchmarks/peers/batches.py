"""transformers' ``generate`` with ``xgrammar.contrib.hf.LogitsProcessor``: what a program without a server does.

Requests go in batches, and a batch lasts until its last answer ends. Prompts are those of Interlock (the model's own
template knows no tools); a required call is a structural tag of xgrammar in the same format. Everything is at xgrammar's
defaults.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
import xgrammar
from harness import Ask, Judged, judge

from interlock.core.messages import Message
from interlock.families import registry
from interlock.families.wire.render import PromptRenderer
from interlock.tokenization.load import describe
from tool_requests import Tool

_BEGIN = '<tool_call>\n{"name": "%s", "arguments": '
_END = "}\n</tool_call>"


@dataclass(frozen=True)
class _Ready:
    """A request whose grammar compiled. place: in the order of the requests."""

    place: int
    ask: Ask
    prompt: list[int]
    grammar: Any


class _FirstToken(transformers.generation.streamers.BaseStreamer):  # type: ignore[misc]
    """When the first token was there. The prompt comes first."""

    def __init__(self) -> None:
        self._num_put = 0
        self.at = 0.0

    def put(self, value: Any) -> None:  # noqa: ARG002
        self._num_put += 1
        if self._num_put == 2:
            self.at = time.perf_counter()

    def end(self) -> None:
        pass


class Batches:
    """folder: a Hugging Face folder; computed in float32 on the CPU."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        torch.set_num_threads(threads)
        description = describe(folder)
        self._tokenizer = description.tokenizer
        self._stop_ids = list(description.tokenizer.vocabulary.stop_ids)
        self._renderer = PromptRenderer(registry.choose(description).family, description)
        self._network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        info = xgrammar.TokenizerInfo.from_huggingface(
            transformers.AutoTokenizer.from_pretrained(folder),
            vocab_size=self._network.config.vocab_size,
            stop_token_ids=self._stop_ids,
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=threads)

    def answer(self, asks: list[Ask], concurrency: int) -> list[Judged]:
        """Batches of ``concurrency`` requests whose grammar compiles."""
        judged = [Judged("refused")] * len(asks)
        batch: list[_Ready] = []
        begin = time.perf_counter()
        for place, ask in enumerate(asks):
            try:
                batch.append(_Ready(place, ask, self._prompt(ask), self._grammar(ask)))
            except RuntimeError:
                continue
            if len(batch) == concurrency or place == len(asks) - 1:
                self._run(batch, begin, judged)
                batch, begin = [], time.perf_counter()
        if batch:
            self._run(batch, begin, judged)
        return judged

    def _prompt(self, ask: Ask) -> list[int]:
        tools = [_tool(declared["function"]) for declared in ask.body.get("tools", ())]
        messages = [Message(role=one["role"], content=one["content"]) for one in ask.body["messages"]]
        return list(self._renderer.render(messages, tools).ids)

    def _grammar(self, ask: Ask) -> Any:
        """Raises ``RuntimeError`` where xgrammar refuses."""
        if not ask.tool:
            return self._compiler.compile_json_schema(json.dumps(ask.schema))
        content = {"type": "json_schema", "json_schema": ask.schema}
        tag = {"type": "tag", "begin": _BEGIN % ask.tool, "content": content, "end": _END}
        return self._compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": tag}))

    def _run(self, batch: Sequence[_Ready], begin: float, judged: list[Judged]) -> None:
        longest = max(len(one.prompt) for one in batch)
        pad = self._stop_ids[0]
        ids = torch.tensor([[pad] * (longest - len(one.prompt)) + one.prompt for one in batch])
        ones = torch.tensor([[0] * (longest - len(one.prompt)) + [1] * len(one.prompt) for one in batch])
        first = _FirstToken()
        output = self._network.generate(
            input_ids=ids,
            attention_mask=ones,
            logits_processor=[xgrammar.contrib.hf.LogitsProcessor([one.grammar for one in batch])],
            streamer=first,
            eos_token_id=self._stop_ids,
            pad_token_id=pad,
            max_new_tokens=max(one.ask.body["max_tokens"] for one in batch),
            do_sample=False,
        )
        for one, row in zip(batch, output[:, longest:].tolist(), strict=True):
            judged[one.place] = self._judged(one.ask, row, first.at - begin)

    def _judged(self, ask: Ask, row: list[int], first_s: float) -> Judged:
        end = next((at for at, token_id in enumerate(row) if token_id in self._stop_ids), None)
        text = self._tokenizer.decode(row[:end])
        if ask.tool:
            text = text.removeprefix(_BEGIN % ask.tool).removesuffix(_END)
        reason = "length" if end is None else "stop"
        return Judged(judge(ask, reason, [ask.tool] if ask.tool else [], text), len(row[:end]), first_s)


def _tool(function: dict[str, Any]) -> Tool:
    return Tool(
        name=function["name"],
        description=function["description"],
        parameters=json.dumps(function["parameters"]),
    )
