from __future__ import annotations

import re
from pathlib import Path

from interlock.families.base import ModelFamily
from interlock.families.table import families_page
from interlock.families.wire.parse import StreamParser
from interlock.families.wire.spell import spell_calls


def test_the_page_of_families_is_what_the_declarations_say(root: Path) -> None:
    assert (root / "docs/families.md").read_text("utf-8") == families_page()


def test_the_family_that_the_guide_adds_works(root: Path) -> None:
    page = (root / "docs/adding-a-family.md").read_text("utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope: dict[str, object] = {}
    exec(source, scope)
    family = scope["FAMILY"]
    assert isinstance(family, ModelFamily)
    text = spell_calls(family.tool_calls, [("get_weather", {"city": "Oslo"})])
    shown = re.search(r"```\n(<\|plamo.*?)```", page, re.DOTALL)
    assert shown is not None
    assert text == shown[1].strip()
    parser = StreamParser(family, special_tokens=None, thinking="none", tools="parse")
    assert [type(event).__name__ for event in parser.push_text(text)] == [
        "ToolCallStart",
        "ToolCallArguments",
        "ToolCallEnd",
    ]
