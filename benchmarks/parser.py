"""How fast answers are read: characters a second of one core, for every family and several ways to cut the text.

What the numbers mean: an answer of two calls, one whose argument is a long text with line breaks, quotes and letters
beyond ASCII, one whose argument is a long list of objects, ``--size`` characters each. It is fed by single characters, by
pieces of 4 (tokens of a model), and whole; ``prose`` is an answer without calls by pieces of 4. CPU time of the process,
best of ``--rounds``. ``growth`` is the time for a character at that size over the time for one at a tenth of it: 1 is
linear, 10 quadratic. ``unit_ns`` is what one call of a built-in function takes meanwhile: twice as much as on an idle
machine means that all else took twice as long as well.

    python benchmarks/parser.py --size 100000
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from common import finish
from interlock.core.tools import Tool
from interlock.families.base import ModelFamily
from interlock.families.catalog import FAMILIES
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls

CHUNKS = {"1": 1, "4": 4, "whole": 0}
UNIT_CALLS = 5_000
LINE = 'print("Århus", 3 * x)  # a line of code\n'
SCHEMA = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
}
TOOL = Tool(name="run", parameters=json.dumps(SCHEMA))


def answer(family: ModelFamily, size: int) -> str:
    """The text of a turn."""
    rows = [{"name": f"row {number}", "value": number} for number in range(size // 34)]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run", {"code": LINE * (size // len(LINE))}),
        ("run", {"rows": rows}),
    ]
    syntax = family.tool_calls
    return spell_calls(syntax, calls[:1] if syntax.single else calls)


def read(family: ModelFamily, text: str, chunk: int) -> float:
    """Seconds of CPU time."""
    parser = StreamParser(family, special_tokens=None, thinking="none", tools="parse", declared=(TOOL,))
    chunk = chunk or len(text)
    start = time.process_time()
    for at in range(0, len(text), chunk):
        parser.push_text(text[at : at + chunk])
    parser.finish(truncated=False)
    return time.process_time() - start


def unit_ns() -> float:
    """How fast this core is now."""
    start = time.process_time()
    for _ in range(UNIT_CALLS):
        len(LINE)
    return 1e9 * (time.process_time() - start) / UNIT_CALLS


def measure(family: ModelFamily, size: int, rounds: int) -> dict[str, Any]:
    short, long, prose = answer(family, size // 10), answer(family, size), LINE * (size // len(LINE))
    seconds = min(read(family, prose, CHUNKS["4"]) for _ in range(rounds))
    row: dict[str, Any] = {"prose": {"mchar_per_s": round(len(prose) / seconds / 1e6, 2)}}
    for name, chunk in CHUNKS.items():
        seconds = min(read(family, long, chunk) for _ in range(rounds))
        before = min(read(family, short, chunk) for _ in range(rounds)) / len(short)
        row[name] = {
            "mchar_per_s": round(len(long) / seconds / 1e6, 2),
            "growth": round(seconds / len(long) / before, 2),
        }
    return row | {"unit_ns": round(min(unit_ns() for _ in range(10)), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--family", action="append", help="only this family, may be repeated")
    arguments = parser.parse_args()
    families = [family for family in FAMILIES if not arguments.family or family.name in arguments.family]
    results = {}
    for family in families:
        results[family.name] = measure(family, arguments.size, arguments.rounds)
        print(family.name, results[family.name], flush=True)
    worst = {name: min(row[name]["mchar_per_s"] for row in results.values()) for name in ("prose", *CHUNKS)}
    growth = max(row[name]["growth"] for row in results.values() for name in CHUNKS)
    finish(
        "parser",
        {"size": arguments.size, "worst_mchar_per_s": worst, "worst_growth": growth, "families": results},
    )


if __name__ == "__main__":
    main()
