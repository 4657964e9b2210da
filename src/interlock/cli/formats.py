"""``interlock formats``: the model families, how each writes a call, and which one a model gets."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock import env
from interlock.families import registry
from interlock.families.check import self_check
from interlock.families.table import family_rows
from interlock.families.wire.render import PromptRenderer
from interlock.provision.resolve import resolve_model
from interlock.tokenization.load import describe


@click.command("formats")
@click.option("--model", help="Show which family this model gets, and whether it works there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str | None, as_json: bool) -> None:
    """List the model families and their tool-call formats."""
    if model is not None:
        _show_choice(model, as_json)
        return
    rows = family_rows()
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    table = Table(show_lines=True)
    table.add_column("family", no_wrap=True)
    table.add_column("models", ratio=1)
    table.add_column("a call", ratio=3, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, (row["name"], row["title"], row["call"])))
    Console().print(table)


def _show_choice(model: str, as_json: bool) -> None:
    description = describe(resolve_model(model, cache=env.cache_dir()))
    choice = registry.choose(description)
    problems = self_check(choice.family, description.tokenizer, PromptRenderer(choice.family, description))
    if as_json:
        shown = {"family": choice.family.name, "reason": choice.reason, "problems": problems}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    click.echo(f"{choice.family.name}: {choice.reason}")
    click.echo("\n".join(f"warning: {problem}" for problem in problems) or "self-check passed")
