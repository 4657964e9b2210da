"""The same 100 requests to Interlock and to a peer: 50 schemas of MaskBench and 50 required calls of the BFCL.

Both servers are asked over chat completions, in alternating rounds, at each concurrency. Every answer is judged by
python-jsonschema: valid, wrong (it ended by itself and is not what was asked for), cut (the token budget), refused (a 400 before
the first token) or failed. Tokens and times are of all answers, ratios are taken within a round.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    verdict: str
    tokens: int
    first_s: float


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


def judge(ask: Ask, answer: Answer) -> str:
    if answer.finish_reason == "length":
        return "cut"
    if ask.tool and [call["name"] for call in answer.tool_calls] != [ask.tool]:
        return "wrong"
    text = answer.tool_calls[0]["arguments"] if ask.tool else answer.content
    return "wrong" if validation_error(text, ask.schema) else "valid"


def one(client: ChatClient, ask: Ask) -> Judged:
    answer = Answer()
    try:
        for _ in client.stream(ask.body, answer):
            pass
    except AnswerError as error:
        refused = not answer.chunks and "failed" not in str(error)
        return Judged("refused" if refused else "failed", answer.completion_tokens, 0.0)
    return Judged(judge(ask, answer), answer.completion_tokens, answer.first_s)


def burst(url: str, requests: list[Ask], concurrency: int) -> dict[str, Any]:
    """All requests, ``concurrency`` at a time."""
    with ChatClient(url) as client, ThreadPoolExecutor(concurrency) as pool:
        begin = time.perf_counter()
        judged = list(pool.map(lambda ask: one(client, ask), requests))
        seconds = time.perf_counter() - begin
    firsts = [found.first_s for found in judged if found.first_s]
    kinds = {
        "schemas": [found for ask, found in zip(requests, judged, strict=True) if not ask.tool],
        "calls": [found for ask, found in zip(requests, judged, strict=True) if ask.tool],
    }
    return {
        "tokens_per_s": round(sum(found.tokens for found in judged) / seconds, 1),
        "first_token_ms": round(1000 * statistics.median(firsts), 1) if firsts else None,
        "share": {kind: dict(Counter(found.verdict for found in part)) for kind, part in kinds.items()},
    }


def compare(peer: str, commands: dict[str, list[str]], arguments: argparse.Namespace, note: str) -> None:
    """commands: of Interlock (``interlock``) and of the peer; each prints its URL. Prints a line for each burst and the
    JSON document at the end. note: what has to be said beside the figures."""
    requests = asks(arguments.tokens)[:: arguments.every]
    results: dict[str, Any] = {}
    with ExitStack() as stack:
        urls = {name: stack.enter_context(server(command)) for name, command in commands.items()}
        for concurrency in arguments.concurrency:
            rounds = []
            for number in range(arguments.rounds):
                rounds.append({name: burst(url, requests, concurrency) for name, url in urls.items()})
                print(f"{concurrency} at once, round {number}: {rounds[-1]}", flush=True)
            results[str(concurrency)] = {
                **{name: [round_[name] for round_ in rounds] for name in urls},
                "tokens_per_s_ratio": round(
                    statistics.median(r["interlock"]["tokens_per_s"] / r[peer]["tokens_per_s"] for r in rounds),
                    3,
                ),
            }
    finish(f"compare_{peer}", {"note": note, "requests": len(requests), "by_concurrency": results})


def parser(doc: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "--concurrency", type=lambda text: [int(word) for word in text.split(",")], default=[1, 4, 8]
    )
    made.add_argument("--tokens", type=int, default=128, help="most tokens of an answer")
    made.add_argument("--rounds", type=int, default=2)
    made.add_argument("--every", type=int, default=1, help="only every n-th request, for a quick look")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--context", type=int, default=2048)
    return made
