"""The Berkeley function calling leaderboard: calls of a served model, constrained against free; or every tool compiled.

What the numbers mean: each question is asked free (``tool_constraints: off``, ``tool_choice`` auto) and constrained
(``tool_choice: required``), greedily, of the embedded model. ``valid``: of the calls
made, those of a declared tool whose arguments fit its schema. ``called``: answers that hold a call. ``right``: answers whose
calls are those that the leaderboard expects (compared without case and punctuation). ``cut``: answers that ``--tokens`` cut
off; what is not whole is no call. ``failed``: requests without an answer, by the error's code; one that takes longer than
``--timeout`` is a ``timeout``.

    python benchmarks/bfcl.py --questions 15
    python benchmarks/bfcl.py --compile-only

With ``--compile-only`` nothing is served: every tool of the leaderboard is lowered for every family, and the grammar engine
compiles each grammar over a vocabulary of bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from bfcl_score import Question, is_right, is_valid, questions
from common import finish, server
from interlock import env
from interlock.constraints.lowering import lower
from interlock.constraints.providers.base import Provider
from interlock.constraints.providers.registry import create_provider
from interlock.core.output_format import TextFormat
from interlock.core.tools import Tool, ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families.base import ModelFamily
from interlock.families.catalog import FAMILIES
from interlock.families.wire.constrain import constrain
from interlock.provision.demo import demo_model
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from tool_requests import QUESTIONS, all_functions, tool_of

CATEGORIES = ("simple_python", "multiple", "parallel")
MODES: dict[str, dict[str, Any]] = {
    "free": {"tool_constraints": "off"},
    "constrained": {"tool_choice": "required"},
}


@dataclass
class Tally:
    """Sums over the answers of one category and mode."""

    asked: int = 0
    called: int = 0
    calls: int = 0
    valid: int = 0
    right: int = 0
    cut: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failed: collections.Counter[str] = field(default_factory=collections.Counter)

    def add(self, question: Question, choice: dict[str, Any], tokens: int, seconds: float) -> None:
        self.asked += 1
        self.tokens += tokens
        self.seconds += seconds
        self.cut += choice["finish_reason"] == "length"
        if choice["finish_reason"] != "tool_calls":
            return
        functions = [call["function"] for call in choice["message"]["tool_calls"]]
        calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
        self.called += 1
        self.calls += len(calls)
        self.valid += sum(is_valid(question, call) for call in calls)
        self.right += is_right(question, calls)

    def row(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "called": self.called,
            "calls": self.calls,
            "valid_share": round(self.valid / self.calls, 4) if self.calls else None,
            "right": self.right,
            "cut": self.cut,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 1),
            "failed": dict(self.failed),
        }


async def served(url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Every question in every mode, ``--concurrency`` at once; the modes of a question one after the other."""
    tallies = {(category, mode): Tally() for category in CATEGORIES for mode in MODES}
    gate = asyncio.Semaphore(arguments.concurrency)

    async def ask(client: httpx.AsyncClient, category: str, question: Question) -> None:
        body = {
            "model": "demo",
            "messages": question.messages,
            "tools": question.tools,
            "temperature": 0,
            "max_tokens": arguments.tokens,
        }
        async with gate:
            for mode, fields in MODES.items():
                tally, start = tallies[category, mode], time.perf_counter()
                try:
                    response = await client.post(f"{url}/v1/chat/completions", json=body | fields)
                except httpx.HTTPError as error:
                    name = "timeout" if isinstance(error, httpx.TimeoutException) else type(error).__name__
                    tally.failed[name] += 1
                    continue
                seconds, told = time.perf_counter() - start, response.json()
                if response.status_code != 200:
                    tally.failed[told["error"]["code"]] += 1
                    continue
                (choice,) = told["choices"]
                tally.add(question, choice, told["usage"]["completion_tokens"], seconds)

    async with httpx.AsyncClient(timeout=arguments.timeout) as client:
        for category in CATEGORIES:
            found = questions(QUESTIONS.parent, category, arguments.questions)
            await asyncio.gather(*(ask(client, category, question) for question in found))
            for mode in MODES:
                print(f"{category}, {mode}: {tallies[category, mode].row()}", flush=True)
    return {f"{category}_{mode}": tally.row() for (category, mode), tally in tallies.items()}


def compiled(every: int) -> dict[str, Any]:
    """Each tool in each family: what was refused, and how long it took."""
    functions = all_functions()
    tools = [tool_of(function) for function in functions[::every]]
    start, refused = time.process_time(), collections.Counter[str]()
    # A marker that is no token of the vocabulary is matched as text, but for MiniMax M3's, which has to be one.
    tokenizer = byte_tokenizer(("<|im_end|>", "]<]minimax[>["))
    provider = create_provider("llguidance", tokenizer)
    for tool in tools:
        for family in FAMILIES:
            try:
                _compile(tool, family, provider, tokenizer.special_tokens)
            except InterlockError as error:
                refused[f"{family.name}: {error.message[:120]}"] += 1
    return {
        "tools": len(tools),
        "families": len(FAMILIES),
        "refused": dict(refused),
        "cpu_s": round(time.process_time() - start, 1),
    }


def _compile(tool: Tool, family: ModelFamily, provider: Provider, special_tokens: dict[str, int]) -> None:
    context = ToolContext(
        effective_tools=(tool,),
        callable_tools=(tool,),
        tool_choice=ToolChoice(mode="required"),
        constrained=True,
    )
    spec = constrain(family, tools=context, output_format=TextFormat(), thinking="none")
    assert spec is not None
    provider.compile(lower(spec, special_tokens).grammar)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="with --compile-only: of the tools every Nth")
    parser.add_argument("--questions", type=int, default=50, help="most questions of a category, evenly spread")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one answer")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.compile_only:
        finish("bfcl", compiled(arguments.every))
        return
    options = [
        "--served-name",
        "demo",
        "--port",
        "0",
        "--log-level",
        "warning",
        "--threads",
        str(arguments.threads),
    ]
    options += ["--slots", str(arguments.concurrency), "--context-tokens", "4096"]
    with server(["-m", "interlock", "serve", str(demo_model(env.cache_dir(), None)), *options]) as url:
        results = asyncio.run(served(url, arguments))
    finish("bfcl", {"questions": arguments.questions, "tokens": arguments.tokens, **results})


if __name__ == "__main__":
    main()
