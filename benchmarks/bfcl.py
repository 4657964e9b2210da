"""Every tool of the Berkeley function calling leaderboard, compiled for every model family.

python benchmarks/bfcl.py --compile-only --every 1
"""

from __future__ import annotations

import argparse
import collections
import json
import lzma
import time

from common import finish
from interlock.constraints.lowering import lower
from interlock.core.output_format import TextFormat
from interlock.core.tools import ToolChoice, ToolContext
from interlock.errors import InterlockError
from interlock.families.catalog import FAMILIES
from interlock.families.wire.constrain import constrain
from tool_requests import QUESTIONS, tool_of

# MiniMax M3's marker has to be a token.
TOKENS = {"]<]minimax[>[": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile-only", action="store_true", required=True)
    parser.add_argument("--every", type=int, default=1, help="of the tools, every Nth")
    arguments = parser.parse_args()
    functions = {}
    for path in sorted(QUESTIONS.parent.glob("*.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                functions |= {json.dumps(function): function for function in json.loads(line)["function"]}
    tools = [tool_of(function) for function in list(functions.values())[:: arguments.every]]
    start, refused = time.process_time(), collections.Counter[str]()
    for tool in tools:
        context = ToolContext(
            effective_tools=(tool,),
            callable_tools=(tool,),
            tool_choice=ToolChoice(mode="required"),
            constrained=True,
        )
        for family in FAMILIES:
            try:
                spec = constrain(family, tools=context, output_format=TextFormat(), thinking="none")
                assert spec is not None
                lower(spec, TOKENS)
            except InterlockError as error:
                refused[f"{family.name}: {error.message[:120]}"] += 1
    seconds = round(time.process_time() - start, 1)
    results = {"tools": len(tools), "families": len(FAMILIES), "refused": dict(refused), "cpu_s": seconds}
    finish("bfcl", results)


if __name__ == "__main__":
    main()
