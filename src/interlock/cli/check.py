"""``interlock check``: what becomes of each keyword of a schema, a sample, and whether documents are generated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock.cli.limits import SCHEMA_LIMITS, schema_limits
from interlock.cli.options import DOCUMENTS, stack
from interlock.cli.shared import EXISTING_FILE
from interlock.constraints.providers.registry import create_provider
from interlock.constraints.schema import SchemaOptions
from interlock.constraints.schema_report import schema_report
from interlock.core.constraint import JsonValue
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe


@click.command("check")
@click.argument("schema", type=EXISTING_FILE)
@click.option("--instance", "instances", type=EXISTING_FILE, multiple=True, help="A JSON document to look for.")
@click.option(
    "--tokenizer",
    type=click.Path(exists=True, path_type=Path),
    help="Compile for this model (tokenizer.json, folder or GGUF) instead of for plain bytes.",
)
@click.option(
    "--order", type=click.Choice(["declared", "any"]), default="declared", help="Order of an object's keys."
)
@click.option("--open-objects", is_flag=True, help="Allow undeclared keys where the schema does.")
@click.option(
    "--schema-mode",
    type=click.Choice(["exact", "relaxed"]),
    default="exact",
    help="relaxed: leave out what is refused.",
)
@stack(DOCUMENTS, *SCHEMA_LIMITS)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def command(
    schema: Path,
    instances: tuple[Path, ...],
    tokenizer: Path | None,
    order: Literal["declared", "any"],
    open_objects: bool,
    schema_mode: Literal["exact", "relaxed"],
    documents: tuple[tuple[str, str], ...],
    as_json: bool,
    **limits: int,
) -> None:
    """Show how SCHEMA is enforced, and which documents are generated under it.

    Exits with 1 if the schema is refused, or an instance is not accepted.
    """
    value = JsonValue(
        _read(schema), open_objects=open_objects, property_order=order, relaxed=schema_mode == "relaxed"
    )
    bytes_ = byte_tokenizer()
    provider = create_provider("llguidance", bytes_)
    timed = create_provider("llguidance", describe(tokenizer).tokenizer) if tokenizer else provider
    report = schema_report(
        value,
        provider,
        bytes_,
        [_read(file) for file in instances],
        dict(documents),
        timed,
        options=SchemaOptions(guards=True, limits=schema_limits(limits)),
    )
    verdicts = report.pop("instances", [])
    result = {
        "schema": str(schema),
        **report,
        "instances": [{"file": str(file), **found} for file, found in zip(instances, verdicts, strict=False)],
    }
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
    else:
        _show(result)
    if not result["compiled"] or not all(item["accepted"] for item in result["instances"]):
        raise SystemExit(1)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{path} is not UTF-8: {error}") from error


def _show(result: dict[str, Any]) -> None:
    table = Table("keyword", "pointer", "state", "reason")
    for row in result["report"]:
        table.add_row(*(Text(row[name]) for name in ("keyword", "pointer", "state", "reason")))
    Console().print(table)
    if result["compiled"]:
        click.echo(
            f"grammar: {result['grammar_chars']} characters, {result['grammar_rules']} rules; "
            f"lowered in {result['lower_ms']} ms, compiled in {result['compile_ms']} ms"
        )
        click.echo(f"sample: {'none was found' if result['sample'] is None else result['sample']}")
    else:
        click.echo("refused")
    for item in result["instances"]:
        told = "accepted" if item["accepted"] else f"stops at character {item['position']}"
        click.echo(f"{item['file']}: {told}{': ' if item['reason'] else ''}{item['reason']}")
