"""``interlock bench URL``: latency, throughput and the share of valid answers, at several concurrencies.

Works on any server with OpenAI's chat completions; every answer is judged by python-jsonschema, not by the server.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from interlock.cli.client import Answer, AnswerError, ChatClient, validation_error
from interlock.cli.shared import API_KEY, FILE, MAX_TOKENS_HELP

_CITIES = ("Oslo", "Paris", "Rome", "Kyiv", "Lima", "Cairo", "Delhi", "Quito")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 20},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "degrees": {"type": "integer", "minimum": -60, "maximum": 60},
        "tags": {
            "type": "array",
            "items": {"enum": ["sun", "rain", "snow"]},
            "maxItems": 3,
            "uniqueItems": True,
        },
    },
    "required": ["city", "unit", "degrees"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "function",
    "function": {"name": "report", "description": "Report weather", "parameters": _SCHEMA},
}
_WORKLOADS: dict[str, dict[str, Any]] = {
    "free": {},
    "schema": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "report", "schema": _SCHEMA}}
    },
    "tool": {"tools": [_TOOL], "tool_choice": "required", "parallel_tool_calls": False},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request. verdict: valid, invalid, cut (by ``max_tokens``) or failed; detail: why it failed or is invalid."""

    verdict: str
    detail: str
    first_s: float
    total_s: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """One workload at one concurrency. Times in seconds; shares of all requests, 0 to 1."""

    workload: str
    concurrency: int
    requests: int
    tokens_per_s: float
    first_p50_s: float
    total_p50_s: float
    total_p99_s: float
    valid: float
    cut: float
    failed: float


@click.command("bench")
@click.argument("url")
@click.option("--model", default=None, help="Default: the first that the server lists.")
@click.option("--concurrency", default="1,4,8", show_default=True, help="Requests at once, a list.")
@click.option(
    "--requests", default=24, show_default=True, type=click.IntRange(1), help="Of each kind and concurrency."
)
@click.option(
    "--workload", "workloads", multiple=True, type=click.Choice(list(_WORKLOADS)), help="Default: all."
)
@click.option("--max-tokens", default=96, show_default=True, type=click.IntRange(1), help=MAX_TOKENS_HELP)
@API_KEY
@click.option("--plot", type=FILE, help="Draw it to this PNG or SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
def command(
    url: str, model: str | None, concurrency: str, plot: Path | None, as_json: bool, **options: Any
) -> None:
    """Measure the server at URL: free text, a JSON schema and a tool call, each at several concurrencies."""
    levels = _levels(concurrency)
    if plot is not None:
        _plotting()  # before minutes of measuring
    console = Console(stderr=as_json)
    try:
        with ChatClient(url, options["api_key"]) as client, Progress(console=console) as progress:
            name = model or client.models()[0]
            rows = list(_measure(client, progress, name, levels, options))
    except AnswerError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps({"url": url, "model": name, "rows": [asdict(row) for row in rows]}))
    else:
        console.print(_table(rows))
    if plot is not None:
        _draw(rows, plot)


def _levels(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no list of numbers", param_hint="--concurrency") from error
    if min(levels) < 1:
        raise click.BadParameter("at least 1", param_hint="--concurrency")
    return levels


def _measure(
    client: ChatClient, progress: Progress, model: str, levels: list[int], options: dict[str, Any]
) -> Iterator[Row]:
    workloads = options["workloads"] or tuple(_WORKLOADS)
    warm_up = _one(client, _body(model, "free", 0, options))  # loads what is loaded at the first request
    if warm_up.verdict == "failed":
        raise AnswerError(warm_up.detail)
    for workload in workloads:
        for level in levels:
            task = progress.add_task(f"{workload}, {level} at once", total=options["requests"])
            bodies = [_body(model, workload, number, options) for number in range(options["requests"])]
            begin = time.perf_counter()
            outcomes = []
            with ThreadPoolExecutor(level) as pool:
                for outcome in pool.map(lambda body: _one(client, body), bodies):
                    outcomes.append(outcome)
                    if outcome.verdict in ("invalid", "failed"):
                        progress.console.print(
                            f"{outcome.verdict}: {outcome.detail}", style="red", markup=False
                        )
                    progress.advance(task)
            yield _row(workload, level, outcomes, time.perf_counter() - begin)


def _body(model: str, workload: str, number: int, options: dict[str, Any]) -> dict[str, Any]:
    text = f"Report number {number}: how is the weather in {_CITIES[number % len(_CITIES)]}?"
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": options["max_tokens"],
        "temperature": 0,
        **_WORKLOADS[workload],
    }


def _one(client: ChatClient, body: dict[str, Any]) -> Outcome:
    answer = Answer()
    try:
        for _ in client.stream(body, answer):
            pass
        verdict, detail = _verdict(answer, body)
    except AnswerError as error:
        verdict, detail = "failed", str(error)
    return Outcome(verdict, detail, answer.first_s, answer.total_s, answer.completion_tokens)


def _verdict(answer: Answer, body: dict[str, Any]) -> tuple[str, str]:
    if "response_format" not in body and "tools" not in body:
        return "valid", ""
    if answer.finish_reason == "length":
        return "cut", ""
    texts = [call["arguments"] for call in answer.tool_calls] if "tools" in body else [answer.content]
    errors = [error for text in texts if (error := validation_error(text, _SCHEMA))]
    if errors or not texts:
        return "invalid", errors[0] if errors else "no tool call"
    return "valid", ""


def _row(workload: str, level: int, outcomes: list[Outcome], wall_s: float) -> Row:
    totals = sorted(outcome.total_s for outcome in outcomes)
    count = len(outcomes)
    share = {name: sum(one.verdict == name for one in outcomes) / count for name in ("valid", "cut", "failed")}
    return Row(
        workload=workload,
        concurrency=level,
        requests=count,
        tokens_per_s=round(sum(one.tokens for one in outcomes) / wall_s, 2),
        first_p50_s=round(statistics.median(one.first_s for one in outcomes), 4),
        total_p50_s=round(statistics.median(totals), 4),
        total_p99_s=round(totals[min(count - 1, int(count * 0.99))], 4),
        **{name: round(value, 4) for name, value in share.items()},
    )


def _table(rows: list[Row]) -> Table:
    table = Table(
        "workload", "at once", "tokens/s", "first p50", "total p50", "total p99", "valid", "cut", "failed"
    )
    for row in rows:
        table.add_row(
            row.workload,
            str(row.concurrency),
            f"{row.tokens_per_s:.1f}",
            *(f"{value:.2f} s" for value in (row.first_p50_s, row.total_p50_s, row.total_p99_s)),
            *(f"{value:.0%}" for value in (row.valid, row.cut, row.failed)),
        )
    return table


def _plotting() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise click.ClickException("--plot needs matplotlib: pip install 'interlock[plots]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _draw(rows: list[Row], path: Path) -> None:
    """Throughput and median latency over concurrency, a line per workload."""
    plt = _plotting()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    panels = (("tokens_per_s", "tokens per second"), ("total_p50_s", "median seconds per answer"))
    for axis, (field, title) in zip(axes, panels, strict=True):
        for workload in dict.fromkeys(row.workload for row in rows):
            own = [row for row in rows if row.workload == workload]
            axis.plot(
                [row.concurrency for row in own], [getattr(row, field) for row in own], "o-", label=workload
            )
        axis.set(xlabel="requests at once", title=title, ylim=(0, None))
        axis.legend()
    figure.savefig(path)
    plt.close(figure)
