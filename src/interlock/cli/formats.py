"""``interlock formats``: the model families, and how each writes a call."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock.families.base import ModelFamily
from interlock.families.registry import FAMILIES
from interlock.families.wire.spell import spell_calls


@click.command("formats")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the model families and their tool-call formats."""
    rows = [_row(family) for family in FAMILIES]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    table = Table("family", "models", "other names", "a call", show_lines=True)
    table.add_column("thinking", no_wrap=True)
    for row in rows:
        cells = (row["name"], row["title"], ", ".join(row["aliases"]), row["call"], row["reasoning"] or "-")
        table.add_row(*map(Text, cells))
    Console().print(table)


def _row(family: ModelFamily) -> dict[str, Any]:
    thinks = family.reasoning
    return {
        "name": family.name,
        "title": family.title,
        "aliases": list(family.aliases),
        "call": spell_calls(family.tool_calls, [("get_weather", {"city": "Oslo"})]),
        "reasoning": f"{thinks.open}..{thinks.close}" if thinks else None,
        "tools_in_prompt": "chat template" if family.tool_prompt is None else "system prompt",
    }
