"""``interlock parse``: raw model text on standard input, what a client would see on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from interlock.cli.shared import EXISTING_FILE
from interlock.core.events import (
    ParserEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from interlock.core.tools import EMPTY_PARAMETERS, Tool
from interlock.errors import InterlockError
from interlock.families import registry
from interlock.families.base import Thinking
from interlock.families.wire import json_text
from interlock.families.wire.parse import StreamParser

_THINKING: tuple[Thinking, ...] = get_args(Thinking)


@click.command("parse")
@click.option("--family", "family_name", required=True, help="Model family; see `interlock formats`.")
@click.option(
    "--tools",
    "tools_file",
    type=EXISTING_FILE,
    help="JSON file with the declared tools, as in a request; calls of other names are pointed out.",
)
@click.option("--chunk", type=click.IntRange(min=1), help="Feed this many characters at a time.")
@click.option("--thinking", type=click.Choice(_THINKING), help="How the turn begins.")
@click.option("--truncated", is_flag=True, help="The text was cut off by a length limit.")
@click.option("--json", "as_line", is_flag=True, help="Print one line of JSON.")
def command(
    family_name: str,
    tools_file: Path | None,
    chunk: int | None,
    thinking: Thinking | None,
    truncated: bool,
    as_line: bool,
) -> None:
    """Parse raw model text on standard input into content, reasoning and tool calls.

    Markers are matched as text. With --chunk the text arrives in pieces, as in a stream; the result is the same.
    """
    family = registry.by_name(family_name)
    tools = read_tools(tools_file) if tools_file else ()
    text = sys.stdin.buffer.read().decode("utf-8", "replace")  # bytes: line ends stay as they are
    parser = StreamParser(
        family,
        special_tokens=None,
        thinking=thinking or ("optional" if family.reasoning else "none"),
        tools="parse",
        declared=tools,
    )
    events, error = _events(parser, text, chunk, truncated)
    result = _result(events, {tool.name for tool in tools} if tools_file else None)
    if error is not None:
        result["error"] = {"code": error.code, "message": error.message}
    click.echo(json.dumps(result, ensure_ascii=False, indent=None if as_line else 2))
    if error is not None:
        raise SystemExit(1)


def read_tools(path: Path) -> tuple[Tool, ...]:
    """Tools of a request, or bare functions."""
    try:
        items = json_text.loads(path.read_text("utf-8"))
        functions = [item.get("function", item) for item in items]
        return tuple(
            Tool(
                name=function["name"],
                description=function.get("description"),
                parameters=json_text.dumps(function["parameters"])
                if "parameters" in function
                else EMPTY_PARAMETERS,
            )
            for function in functions
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.BadParameter(
            f"{path} holds no JSON list of tools: {error!r}", param_hint="--tools"
        ) from error


def _events(
    parser: StreamParser, text: str, chunk: int | None, truncated: bool
) -> tuple[list[ParserEvent], InterlockError | None]:
    events: list[ParserEvent] = []
    size = chunk or max(len(text), 1)
    try:
        for start in range(0, len(text), size):
            events += parser.push_text(text[start : start + size])
        events += parser.finish(truncated)
    except InterlockError as error:
        return events, error
    return events, None


def _result(events: Sequence[ParserEvent], declared: set[str] | None) -> dict[str, Any]:
    calls = [_call(start, events) for start in events if isinstance(start, ToolCallStart)]
    ended = {event.index for event in events if isinstance(event, ToolCallEnd)}
    result: dict[str, Any] = {
        "content": "".join(event.text for event in events if isinstance(event, TextDelta)) or None,
        "reasoning": "".join(event.text for event in events if isinstance(event, ReasoningDelta)) or None,
        "tool_calls": [call for index, call in enumerate(calls) if index in ended],
    }
    if len(ended) < len(calls):
        result["incomplete_tool_call"] = calls[-1]
    if declared is not None:
        names = [call["function"]["name"] for call in calls]
        result["undeclared_tools"] = [name for name in dict.fromkeys(names) if name not in declared]
    result["events"] = [_event(event) for event in events]
    return result


def _call(start: ToolCallStart, events: Sequence[ParserEvent]) -> dict[str, Any]:
    arguments = "".join(
        event.text for event in events if isinstance(event, ToolCallArguments) and event.index == start.index
    )
    return {"id": start.id, "type": "function", "function": {"name": start.name, "arguments": arguments}}


def _event(event: ParserEvent) -> dict[str, Any]:
    return {"event": type(event).__name__, **msgspec.structs.asdict(event)}
