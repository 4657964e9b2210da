"""The pace of running streams while constraints come that are costly to compile, and the processor after their clients left.

What the numbers mean: ``--streams`` free requests of ``--tokens`` tokens run on the demo model, first in peace, then while
``--clients`` clients send constraints that compile for as long as they may (patterns that explode, lists of 20,000 words, a constant
of 1.5 million characters), none like another, half of them leaving after a second. ``slowest_over_median`` is the largest gap between two tokens of a stream over
the median gap, of the worst stream. ``busy_after`` is the processor time of all processes of the server in the two seconds that
begin two seconds after the last client has left, over that time.

    python benchmarks/hostile.py --threads 1
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import time
from typing import Any

import httpx
import psutil

from common import finish, server

_number = itertools.count()


def hostile_format() -> dict[str, Any]:
    """Another costly constraint on each call."""
    number = next(_number)
    kinds: list[dict[str, Any]] = [
        {"type": "string", "pattern": f"^(({number}|[a-z]{{1,100}}){{1,100}}){{1,100}}$"},
        {"type": "string", "pattern": f"^{number}(.*a.{{50}}){{20}}$"},
        {"enum": [f"{number}: option {index} of the list" for index in range(20_000)]},
        {"const": f"{number}" + "x" * 1_500_000},
        {"properties": {f"p{number}-{index}": {} for index in range(5_000)}},
    ]
    schema = kinds[number % len(kinds)]
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": [{"role": "user", "content": "Count."}], "temperature": 0, **fields}


async def gaps_ms(client: httpx.AsyncClient, tokens: int) -> list[float]:
    """Between the tokens of one stream; the first ones, beside a prompt, are left out."""
    request = body(stream=True, max_tokens=tokens, ignore_eos=True)
    times = []
    async with client.stream("POST", "/v1/chat/completions", json=request) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                times.append(time.perf_counter())  # noqa: PERF401 - a comprehension cannot tell when
    return [1000 * (after - before) for before, after in itertools.pairwise(times[8:])]


async def be_hostile(client: httpx.AsyncClient, ended: asyncio.Event, outcomes: list[str]) -> None:
    while not ended.is_set():
        request = body(response_format=hostile_format(), max_tokens=4)
        patience_s = 1.0 if len(outcomes) % 2 else 60.0
        try:
            answer = await client.post("/v1/chat/completions", json=request, timeout=patience_s)
            outcomes.append(answer.json().get("error", {}).get("code", "answered"))
        except httpx.TimeoutException:
            outcomes.append("left")


def cpu_s(root: psutil.Process) -> float:
    processes = [root, *root.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


async def measure(url: str, root: psutil.Process, arguments: argparse.Namespace) -> dict[str, Any]:
    results: dict[str, Any] = {}
    outcomes: list[str] = []
    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        for name in ("peace", "hostile"):
            ended = asyncio.Event()
            clients = arguments.clients if name == "hostile" else 0
            enemies = [asyncio.create_task(be_hostile(client, ended, outcomes)) for _ in range(clients)]
            streams = await asyncio.gather(
                *(gaps_ms(client, arguments.tokens) for _ in range(arguments.streams))
            )
            ended.set()
            for enemy in enemies:
                enemy.cancel()
            await asyncio.gather(*enemies, return_exceptions=True)
            ratios = [max(gaps) / statistics.median(gaps) for gaps in streams]
            results[name] = {
                "median_gap_ms": round(statistics.median(gap for gaps in streams for gap in gaps), 2),
                "slowest_gap_ms": round(max(map(max, streams)), 2),
                "slowest_over_median": round(max(ratios), 2),
            }
        await asyncio.sleep(2)
        before = cpu_s(root)
        await asyncio.sleep(2)
        busy = round((cpu_s(root) - before) / 2, 3)
        metrics = (await client.get("/metrics")).text
    in_flight = next(line for line in metrics.splitlines() if line.startswith("interlock_requests_in_flight"))
    counted = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    return {**results, "outcomes": counted, "busy_after": busy, "in_flight_after": float(in_flight.split()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    options = ["--port", "0", "--threads", str(arguments.threads), "--context-tokens", "2048"]
    with server(["-m", "interlock", "serve", "demo", *options]) as url:
        (root,) = psutil.Process().children()
        results = asyncio.run(measure(url, root, arguments))
    finish("hostile", {**vars(arguments), **results})


if __name__ == "__main__":
    main()
