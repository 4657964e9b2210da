"""``interlock check``: what becomes of each keyword of a schema, a sample, and whether documents are generated."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock.constraints.check import SchemaCheck
from interlock.constraints.lowering import lower
from interlock.constraints.providers.registry import create_provider
from interlock.constraints.schema import SchemaOptions, compile_schema, json_syntax, load_schema
from interlock.core.constraint import ConstraintSpec, JsonValue
from interlock.errors import InterlockError
from interlock.tokenization.byte_tokenizer import byte_tokenizer
from interlock.tokenization.load import describe

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("check")
@click.argument("schema", type=_FILE)
@click.option("--instance", "instances", type=_FILE, multiple=True, help="A JSON document to look for.")
@click.option(
    "--tokenizer",
    type=click.Path(exists=True, path_type=Path),
    help="Compile for this model (tokenizer.json, folder or GGUF) instead of for plain bytes.",
)
@click.option(
    "--order", type=click.Choice(["declared", "any"]), default="declared", help="Order of an object's keys."
)
@click.option("--open-objects", is_flag=True, help="Allow undeclared keys where the schema does.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def command(
    schema: Path,
    instances: tuple[Path, ...],
    tokenizer: Path | None,
    order: Literal["declared", "any"],
    open_objects: bool,
    as_json: bool,
) -> None:
    """Show how SCHEMA is enforced, and which documents are generated under it.

    Exits with 1 if the schema is refused, or an instance is not accepted.
    """
    value = JsonValue(_read(schema), open_objects=open_objects, property_order=order)
    result = {"schema": str(schema), **_compiled(value, tokenizer)}
    result["instances"] = []
    if result["compiled"]:
        bytes_ = byte_tokenizer()
        checked = SchemaCheck(value, create_provider("llguidance", bytes_), bytes_)
        result["sample"] = checked.sample()
        for file in instances:
            found = checked.verdict(_read(file))
            result["instances"].append(
                {
                    "file": str(file),
                    "accepted": found.accepted,
                    "position": found.position,
                    "reason": found.reason,
                }
            )
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


def _compiled(value: JsonValue, tokenizer: Path | None) -> dict[str, Any]:
    """Report, problems, size and times."""
    provider = create_provider("llguidance", describe(tokenizer).tokenizer if tokenizer else byte_tokenizer())
    options = SchemaOptions(open_objects=value.open_objects, property_order=value.property_order, guards=True)
    syntax = json_syntax(value.item_separator, value.key_separator, flexible=False)
    begin = time.perf_counter()
    compiled = compile_schema(load_schema(value.schema), options, syntax, "j")
    lower_ms = (time.perf_counter() - begin) * 1e3
    rows = [
        {"keyword": item.keyword, "pointer": item.pointer, "state": item.status, "reason": item.reason}
        for item in compiled.report.findings
    ]
    placed = {(row["keyword"], row["pointer"]) for row in rows if row["state"] == "refused"}
    rows += [
        {"keyword": item.keyword, "pointer": item.pointer, "state": "refused", "reason": item.reason}
        for item in compiled.problems
        if (item.keyword, item.pointer) not in placed
    ]
    result: dict[str, Any] = {"compiled": not compiled.problems, "report": rows}
    if compiled.problems:
        return result
    begin = time.perf_counter()
    try:
        provider.compile(lower(ConstraintSpec(root=value), {}).grammar)
    except InterlockError as error:
        rows.append({"keyword": "", "pointer": "", "state": "refused", "reason": error.message})
        return {"compiled": False, "report": rows}
    native_ms = (time.perf_counter() - begin) * 1e3
    return {
        **result,
        "grammar_chars": len(compiled.lark),
        "grammar_rules": compiled.lark.count("\n"),
        "lower_ms": round(lower_ms, 2),
        "compile_ms": round(native_ms, 2),
    }


def _show(result: dict[str, Any]) -> None:
    table = Table("keyword", "pointer", "state", "reason")
    for row in result["report"]:
        table.add_row(*(Text(row[name]) for name in ("keyword", "pointer", "state", "reason")))
    Console().print(table)
    if not result["compiled"]:
        click.echo("refused")
        return
    click.echo(
        f"grammar: {result['grammar_chars']} characters, {result['grammar_rules']} rules; "
        f"lowered in {result['lower_ms']} ms, compiled in {result['compile_ms']} ms"
    )
    click.echo(f"sample: {result['sample']}")
    for item in result["instances"]:
        told = "accepted" if item["accepted"] else f"stops at character {item['position']}"
        click.echo(f"{item['file']}: {told}{': ' if item['reason'] else ''}{item['reason']}")
