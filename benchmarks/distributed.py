"""What Interlock in front of vLLM costs, and what it holds that vLLM alone does not.

Speed: `serving.py`'s bursts, alternating between vLLM's own chat completions and Interlock in front of the same vLLM; every
request generates exactly ``--tokens`` tokens. Validity: schemas with keywords that vLLM passes over or weakens, several seeds each
at temperature 1; an answer that ended by itself is judged by python-jsonschema, one that was cut counts as cut.

    scripts/vllm_environment.sh ~/.cache/interlock/vllm
    python benchmarks/distributed.py --vllm ~/.cache/interlock/vllm --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from common import demo_folder, finish, server
from serving import measure

_PLAIN = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 50}, "b": {"type": "boolean"}}}
WEAKENED: dict[str, dict[str, Any]] = {
    "not": {**_PLAIN, "required": ["a"], "not": {"properties": {"a": {"minimum": 3}}}},
    "if/then/else": {
        **_PLAIN,
        "required": ["a"],
        "if": {"properties": {"a": {"maximum": 9}}},
        "then": {"required": ["b"]},
        "else": {"properties": {"b": False}},
    },
    "dependentRequired": {**_PLAIN, "required": ["a"], "dependentRequired": {"a": ["b"]}},
    "look-ahead": {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(?!a)[a-c]{2,4}$"}}, "required": ["s"]},
    "oneOf": {
        "type": "object",
        "properties": {
            "n": {"oneOf": [{"type": "integer", "minimum": 1, "maximum": 6}, {"type": "integer", "minimum": 4, "maximum": 9}]}
        },
        "required": ["n"],
    },
}  # fmt: skip


async def validity(url: str, seeds: int) -> dict[str, dict[str, int]]:
    """For each keyword how many answers were valid, wrong, cut or refused."""
    found: dict[str, Counter[str]] = {name: Counter() for name in WEAKENED}
    async with httpx.AsyncClient(timeout=600) as client:
        for name, schema in WEAKENED.items():
            answers = await asyncio.gather(*(_answer(client, url, schema, seed) for seed in range(seeds)))
            found[name].update(answers)
    return {name: dict(counts) for name, counts in found.items()}


async def _answer(client: httpx.AsyncClient, url: str, schema: dict[str, Any], seed: int) -> str:
    body = {
        "model": "demo",
        "messages": [{"role": "user", "content": "Give me some JSON."}],
        "temperature": 1,
        "seed": seed,
        "max_tokens": 120,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": schema, "strict": True},
        },
    }
    response = await client.post(f"{url}/v1/chat/completions", json=body)
    if response.status_code != 200:
        return "refused" if response.status_code == 400 else "failed"
    choice = response.json()["choices"][0]
    if choice["finish_reason"] != "stop":
        return "cut"
    try:
        jsonschema.validate(json.loads(choice["message"]["content"]), schema)
    except (ValueError, jsonschema.ValidationError):
        return "wrong"
    return "valid"


async def in_front(urls: dict[str, str], arguments: argparse.Namespace) -> dict[str, Any]:
    held = await validity(urls["ours"], arguments.seeds)
    print(f"validity of ours: {held}", flush=True)
    # ignore_eos is refused in front of vLLM
    endless = {"min_tokens": arguments.tokens}
    speed = await measure(urls, arguments, endless) if arguments.rounds else {}
    return {"validity_ours": held, "by_concurrency": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, required=True, help="environment with vLLM")
    parser.add_argument(
        "--concurrency", type=lambda text: [int(word) for word in text.split(",")], default=[1, 4, 8]
    )
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3, help="0: validity only")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--out", type=Path, default=None, help="a file for the JSON document")
    arguments = parser.parse_args()

    folder = str(demo_folder())
    peer = ["benchmarks/peers/vllm_server.py", folder, "--environment", str(arguments.vllm)]
    # A vLLM keeps the grammar engine of its first structured request, so each side gets its own.
    with server([*peer, "--backend", "auto"]) as vllm_url:
        alone = asyncio.run(validity(vllm_url, arguments.seeds))
        print(f"validity of vLLM alone: {alone}", flush=True)
    with server(peer) as vllm_url:
        front = ["-m", "interlock", "serve", "--engine", "vllm", "--url", vllm_url, "--tokenizer", folder]
        options = ["--served-name", "demo", "--port", "0", "--log-level", "warning"]
        with server([*front, *options]) as url:
            results = asyncio.run(in_front({"ours": url, "peer": vllm_url}, arguments))
    finish(
        "distributed",
        {"tokens": arguments.tokens, "rounds": arguments.rounds, "validity_vllm": alone, **results},
        arguments.out,
    )


if __name__ == "__main__":
    main()
