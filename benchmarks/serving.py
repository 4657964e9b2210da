"""Constrained against free generation over HTTP, and both against llama.cpp's own server on the same file.

What the numbers mean: every request generates exactly ``--tokens`` tokens. A free request is kept from ending by ``ignore_eos``,
which both servers have, a constrained one by a schema that is far from complete by then, so the model does the same amount of
work in both and the ratio shows what the constraint costs. Four bursts alternate (ours free, ours constrained, peer free,
peer constrained); a ratio is taken within each round, and the median over the rounds is reported.

    python benchmarks/serving.py --threads 2 --rounds 5
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from typing import Any

from common import Load, burst, finish, server

SCHEMA: dict[str, Any] = {
    "type": "array",
    "minItems": 50,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 30},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "role": {"enum": ["engineer", "designer", "manager"]},
        },
        "required": ["name", "age", "role"],
        "additionalProperties": False,
    },
}

IGNORE_EOS = {"ignore_eos": True}


def bodies(
    count: int, tokens: int, *, constrained: bool, burst_: str, endless: dict[str, Any]
) -> list[dict[str, Any]]:
    """``count`` requests with prompts of their own, so that no prefix cache helps either server. endless: what keeps a free one
    from ending."""
    extra: dict[str, Any] = (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "staff", "schema": SCHEMA}}}
        if constrained
        else endless
    )
    return [
        {
            "model": "demo",
            "messages": [{"role": "user", "content": f"{burst_}, {i}: list the staff of a company as JSON."}],
            "temperature": 0,
            "max_tokens": tokens,
            **extra,
        }
        for i in range(count)
    ]


async def measure(
    urls: dict[str, str], arguments: argparse.Namespace, endless: dict[str, Any] = IGNORE_EOS
) -> dict[str, Any]:
    """All rounds at all concurrencies. endless: see ``bodies``."""
    results: dict[str, Any] = {}
    for concurrency in arguments.concurrency:
        rounds: list[dict[str, Load]] = []
        for number in range(arguments.rounds + 1):
            loads = {
                f"{name}_{kind}": await burst(
                    url,
                    bodies(
                        concurrency,
                        arguments.tokens,
                        constrained=kind == "constrained",
                        burst_=f"{concurrency}.{number} {kind}",
                        endless=endless,
                    ),
                )
                for name, url in urls.items()
                for kind in ("free", "constrained")
            }
            if number:  # round 0 warms caches and compiles the grammar
                rounds.append(loads)
        results[str(concurrency)] = summary(rounds)
        print(f"concurrency {concurrency}: {results[str(concurrency)]}", flush=True)
    return results


def summary(rounds: list[dict[str, Load]]) -> dict[str, Any]:
    """Medians of tokens per second, and of the ratios within each round."""

    def ratio(over: str, under: str) -> float:
        return round(statistics.median(r[over].tokens_per_s / r[under].tokens_per_s for r in rounds), 3)

    names = list(rounds[0])
    out: dict[str, Any] = {
        "tokens_per_s": {
            name: round(statistics.median(r[name].tokens_per_s for r in rounds), 1) for name in names
        },
        "first_token_ms": {
            name: round(1000 * statistics.median(r[name].first_token_s for r in rounds), 1) for name in names
        },
        "constrained_over_free": ratio("ours_constrained", "ours_free"),
    }
    if "peer_free" in rounds[0]:
        out["peer_constrained_over_free"] = ratio("peer_constrained", "peer_free")
        out["free_vs_peer"] = ratio("ours_free", "peer_free")
        out["constrained_vs_peer"] = ratio("ours_constrained", "peer_constrained")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--concurrency", type=lambda text: [int(word) for word in text.split(",")], default=[1, 4, 8, 16]
    )
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--serve", default="", help="more options of interlock serve, in one string")
    parser.add_argument("--no-peer", action="store_true", help="leave llama.cpp's own server out")
    arguments = parser.parse_args()

    from interlock import env
    from interlock.provision.demo import demo_model

    model = str(demo_model(env.cache_dir(), None))
    slots = str(max(arguments.concurrency))
    common = ["--threads", str(arguments.threads), "--slots", slots]
    ours = [
        "-m",
        "interlock",
        "serve",
        model,
        *arguments.serve.split(),
        "--served-name",
        "demo",
        "--port",
        "0",
        "--log-level",
        "warning",
    ]
    peer = ["benchmarks/peers/llama_server.py", model, *common, "--context", str(arguments.context)]
    with server([*ours, *common, "--context-tokens", str(arguments.context)]) as url:
        if arguments.no_peer:
            results = asyncio.run(measure({"ours": url}, arguments))
        else:
            with server(peer) as peer_url:
                results = asyncio.run(measure({"ours": url, "peer": peer_url}, arguments))
    finish(
        "serving",
        {
            "tokens": arguments.tokens,
            "rounds": arguments.rounds,
            "threads": arguments.threads,
            "by_concurrency": results,
        },
    )


if __name__ == "__main__":
    main()
