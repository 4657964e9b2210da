"""``interlock trace FILE``: a saved trace in the terminal, each token coloured by what the constraint took away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from interlock.cli.shared import EXISTING_FILE

_HEAT = (235, 90, 40)


@click.command("trace")
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--tokens", "each", is_flag=True, help="A row for each token: what the model wanted, what was allowed."
)
@click.option("--json", "as_json", is_flag=True, help="Print the totals as one JSON document.")
def command(file: Path, each: bool, as_json: bool) -> None:
    """Show the trace in FILE, saved by `interlock run --trace FILE` or by the admin page.

    The redder a token, the more of the model's probability the constraint took away there; forced tokens are
    underlined, drafted ones in italics.
    """
    tokens = _read(file)
    totals = _totals(tokens)
    if as_json:
        click.echo(json.dumps(totals))
        return
    console = Console()
    console.print(Text.assemble(*(_token(token) for token in tokens)))
    if each:
        console.print(_table(tokens))
    console.print(
        f"{totals['tokens']} tokens: {totals['forced']} forced, {totals['drafted']} drafted, "
        f"{totals['changed']} other than the model wanted; on average {totals['removed_mean']:.1%} of the "
        f"probability taken away"
    )


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        value = json.loads(file.read_text("utf-8"))
        tokens: list[dict[str, Any]] = value["trace"] if isinstance(value, dict) else value
        for token in tokens:
            _ = token["token"], token["source"]
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"{file} holds no trace; interlock run --trace FILE and the admin page save one"
        ) from error
    return tokens


def _totals(tokens: list[dict[str, Any]]) -> dict[str, Any]:
    removed = [float(token.get("removed") or 0) for token in tokens]
    return {
        "tokens": len(tokens),
        "forced": sum(token["source"] == "forced" for token in tokens),
        "drafted": sum(token["source"] == "draft" for token in tokens),
        "changed": sum(_changed(token) for token in tokens),
        "removed_mean": sum(removed) / max(1, len(removed)),
    }


def _changed(token: dict[str, Any]) -> bool:
    wanted = token.get("wanted")
    return wanted is not None and wanted["id"] != token["id"]


def _token(token: dict[str, Any]) -> tuple[str, Style]:
    share = min(1.0, float(token.get("removed") or 0))
    background = Color.from_rgb(*(round(part * share * 0.8) for part in _HEAT)) if share > 0.01 else None
    source = token["source"]
    return token["token"], Style(bgcolor=background, underline=source == "forced", italic=source == "draft")


def _table(tokens: list[dict[str, Any]]) -> Table:
    table = Table("token", "source", "wanted", "taken away", "allowed ids")
    for token in tokens:
        wanted = token.get("wanted")
        table.add_row(
            Text(repr(token["token"])),
            token["source"],
            Text(
                f"{wanted['token']!r} ({wanted['probability']:.1%})" if wanted and _changed(token) else "same"
            ),
            f"{float(token.get('removed') or 0):.1%}",
            str(token.get("num_allowed", "")),
        )
    return table
