"""How much work reading is, counted: calls, and characters that a step is given to look at. Time would depend on the
machine."""

from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any

import pytest

from interlock.core.tools import Tool
from interlock.families.base import ModelFamily
from interlock.families.registry import FAMILIES
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls

SCHEMA = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "any": {"type": ["object", "string"]},
    },
}
TOOL = Tool(name="run", parameters=json.dumps(SCHEMA))


def arguments(key: str, size: int) -> dict[str, Any]:
    match key:
        case "code":
            return {"code": 'f("é", 3 < x)\n' * (size // 15)}
        case "rows":
            return {"rows": [{"name": f"row {number}"} for number in range(size // 20)]}
        case _:
            return {"any": "{ [ text " * (size // 9)}


def work(family: ModelFamily, text: str, chunk: int) -> int:
    parser = StreamParser(family, special_tokens=None, thinking="none", tools="parse", declared=(TOOL,))
    done = 0

    def count(frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal done
        if event == "call":
            given = frame.f_locals
            text, pos = given.get("text"), given.get("pos", 0)
            done += 1 + (len(text) - pos if isinstance(text, str) and isinstance(pos, int) else 0)
        elif event == "c_call":
            done += 1

    sys.setprofile(count)
    try:
        for at in range(0, len(text), chunk):
            parser.push_text(text[at : at + chunk])
        parser.finish(truncated=False)
    finally:
        sys.setprofile(None)
    return done


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_longer_argument_is_proportionally_more_work(family: ModelFamily) -> None:
    for key in ("code", "rows", "any"):
        short, long = (spell_calls(family.tool_calls, [("run", arguments(key, size))]) for size in (200, 1000))
        done = [work(family, text, 5) / len(text) for text in (short, long)]
        assert done[1] < 1.25 * done[0], key
