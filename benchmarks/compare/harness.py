"""The same 100 requests to Interlock and to a peer: 50 schemas of MaskBench and 50 required calls of the BFCL.

All are asked in alternating rounds, at each concurrency; servers over chat completions. Every answer is judged by
python-jsonschema: valid (whatever ended it), wrong (it ended by itself and is not what was asked for), cut (so by the token
budget), refused (before the first token) or failed. Tokens and times are of all answers, ratios are taken within a round. The requests come again in each
round, so what is kept between requests (grammars, the cache of prompts) counts from the second one on.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common import ROOT, finish, server
from interlock.cli.client import Answer, AnswerError, ChatClient, validation_error
from tool_requests import QUESTIONS, tool_of

_MASKBENCH = ROOT.parent / "shared" / "data" / "maskbench"
_LARGEST = 3_000  # characters of a schema; the contexts of small servers are small
_COUNT = 50


@dataclass(frozen=True, slots=True)
class Ask:
    """A request and the schema that its answer is judged by. tool: the call that is required, if one is."""

    body: dict[str, Any]
    schema: Any
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """first_s: until something of the answer was there, 0 where nothing came."""

    verdict: str
    tokens: int = 0
    first_s: float = 0.0


class Contestant(Protocol):
    def answer(self, asks: list[Ask], concurrency: int) -> list[Judged]:
        """All of them, ``concurrency`` at a time."""
        ...


def asks(max_tokens: int) -> list[Ask]:
    """The same at each call: schemas at even distances in MaskBench's order, and the first questions of the BFCL."""
    return [*_schemas(max_tokens), *_calls(max_tokens)]


def _schemas(max_tokens: int) -> list[Ask]:
    found = []
    for path in sorted(_MASKBENCH.glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8-sig") as lines:
            found += [json.loads(line)["schema"] for line in lines if len(line) < 10 * _LARGEST]
    small = [schema for schema in found if isinstance(schema, dict) and len(json.dumps(schema)) <= _LARGEST]
    chosen = small[:: len(small) // _COUNT][:_COUNT]
    return [
        Ask(
            _body(
                "Write one JSON document about anything you like.",
                max_tokens,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "document", "schema": schema, "strict": True},
                },
            ),
            schema,
        )
        for schema in chosen
    ]


def _calls(max_tokens: int) -> list[Ask]:
    found = []
    with lzma.open(QUESTIONS, "rt", encoding="utf-8") as lines:
        for line, _ in zip(lines, range(_COUNT), strict=False):
            question = json.loads(line)
            tool = tool_of(question["function"][0])
            declared = {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema(),
                "strict": True,
            }
            body = _body(
                question["question"][0][-1]["content"],
                max_tokens,
                tools=[{"type": "function", "function": declared}],
                tool_choice="required",
                parallel_tool_calls=False,
            )
            found.append(Ask(body, tool.schema(), tool.name))
    return found


def _body(text: str, max_tokens: int, **fields: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"model": "demo", "messages": [message], "temperature": 0, "max_tokens": max_tokens, **fields}


def judge(ask: Ask, finish_reason: str | None, calls: list[str], text: str) -> str:
    """calls: names of what was called. text: the arguments of the call, or the answer."""
    fits = calls == [ask.tool] if ask.tool else not calls
    if fits and not validation_error(text, ask.schema):
        return "valid"
    return "cut" if finish_reason == "length" else "wrong"


class Served:
    """A server with chat completions."""

    def __init__(self, url: str) -> None:
        self._url = url

    def answer(self, asks: list[Ask], concurrency: int) -> list[Judged]:
        with ChatClient(self._url) as client, ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(lambda ask: _one(client, ask), asks))


@contextmanager
def served(commands: Mapping[str, list[str]], options: argparse.Namespace) -> Iterator[dict[str, Contestant]]:
    """Servers by their names, but for those left out by ``--without``."""
    with ExitStack() as stack:
        yield {
            name: Served(stack.enter_context(server(command)))
            for name, command in commands.items()
            if name not in options.without
        }


def _one(client: ChatClient, ask: Ask) -> Judged:
    answer, begin, first_s = Answer(), time.perf_counter(), 0.0
    try:
        for _ in client.stream(ask.body, answer):
            first_s = first_s or time.perf_counter() - begin
    except AnswerError as error:
        refused = not answer.chunks and "failed" not in str(error)
        return Judged("refused" if refused else "failed", answer.completion_tokens)
    text = answer.tool_calls[0]["arguments"] if answer.tool_calls else answer.content
    verdict = judge(ask, answer.finish_reason, [call["name"] for call in answer.tool_calls], text)
    return Judged(verdict, answer.completion_tokens, first_s)


def burst(contestant: Contestant, asks: list[Ask], concurrency: int) -> dict[str, Any]:
    begin = time.perf_counter()
    judged = contestant.answer(asks, concurrency)
    seconds = time.perf_counter() - begin
    firsts = [found.first_s for found in judged if found.first_s]
    kinds = {
        "schemas": [found for ask, found in zip(asks, judged, strict=True) if not ask.tool],
        "calls": [found for ask, found in zip(asks, judged, strict=True) if ask.tool],
    }
    return {
        "seconds": round(seconds, 1),
        "tokens_per_s": round(sum(found.tokens for found in judged) / seconds, 1),
        "first_token_ms": round(1000 * statistics.median(firsts), 1) if firsts else None,
        "share": {kind: dict(Counter(found.verdict for found in part)) for kind, part in kinds.items()},
        "wrong": [at for at, found in enumerate(judged) if found.verdict == "wrong"],
    }


def compare(
    name: str, contestants: Mapping[str, Contestant], precision: Mapping[str, str], options: argparse.Namespace
) -> None:
    """The last contestant is the peer, the others are Interlock. precision: what each computes in, by name. Prints a line for each
    burst and the JSON document at the end."""
    asked = asks(options.tokens)[:: options.every]
    *ours, peer = contestants
    for contestant in contestants.values():
        contestant.answer(asked[:1], 1)  # what only a first request does
    rounds: dict[int, list[dict[str, Any]]] = {concurrency: [] for concurrency in options.concurrency}
    begin = time.monotonic()
    for number in range(options.rounds):
        for concurrency, done in rounds.items():
            if number and time.monotonic() - begin > 60 * options.minutes:
                continue
            done.append({})
            for who, contestant in contestants.items():
                done[-1][who] = burst(contestant, asked, concurrency)
                print(f"{concurrency} at once, round {number}, {who}: {done[-1][who]}", flush=True)
    results = {
        str(concurrency): {
            "rounds": done,
            "tokens_per_s_over_peer": {
                who: round(statistics.median(r[who]["tokens_per_s"] / r[peer]["tokens_per_s"] for r in done), 3)
                for who in ours
            },
        }
        for concurrency, done in rounds.items()
    }
    finish(
        f"compare_{name}",
        {
            "peer": peer,
            "precision": {who: precision[who] for who in contestants},
            "requests": len(asked),
            "tokens": options.tokens,
            "threads": options.threads,
            "by_concurrency": results,
        },
        options.out,
    )


def ours(model: str, options: argparse.Namespace) -> list[str]:
    """The command that serves ``model`` with a worker of our own."""
    return [
        *("-m", "interlock", "serve", model, "--served-name", "demo", "--port", "0", "--log-level", "warning"),
        *("--threads", str(options.threads), "--slots", str(max(options.concurrency))),
        *("--context-tokens", str(options.context)),
    ]


def parser(doc: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "--concurrency", type=lambda text: [int(word) for word in text.split(",")], default=[1, 4, 8]
    )
    made.add_argument("--tokens", type=int, default=128, help="most tokens of an answer")
    made.add_argument("--rounds", type=int, default=2)
    made.add_argument(
        "--minutes", type=float, default=60.0, help="no burst begins later, but for the first round"
    )
    made.add_argument("--every", type=int, default=1, help="only every n-th request, for a quick look")
    made.add_argument(
        "--without", action="append", default=[], help="a contestant that is left out, by its name"
    )
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--context", type=int, default=2048)
    made.add_argument("--out", type=Path, default=None, help="a file for the JSON document; see report.py")
    return made
