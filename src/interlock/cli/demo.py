"""``interlock demo``: a server on the embedded model, three requests, three checks.

The checks do not trust the server: every answer is validated with python-jsonschema.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax

from interlock import env, launch, log
from interlock.cli.client import Answer, AnswerError, ChatClient, validation_error
from interlock.cli.shared import THREADS
from interlock.config import EngineConfig, HttpConfig, LlamaCppConfig, ServerConfig
from interlock.provision.demo import demo_model
from interlock.provision.progress import TerminalProgress

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "maxLength": 40},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
EMAIL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "format": "email", "maxLength": 60},
        "subject": {"type": "string", "minLength": 1, "maxLength": 60},
    },
    "required": ["to", "subject"],
    "additionalProperties": False,
}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "languages": {
            "type": "array",
            "items": {"type": "string", "maxLength": 20},
            "minItems": 1,
            "maxItems": 3,
        },
    },
    "required": ["name", "age", "languages"],
    "additionalProperties": False,
}
TOOLS: dict[str, dict[str, Any]] = {"get_weather": WEATHER, "send_email": EMAIL}


def _tool(name: str, description: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": TOOLS[name]},
    }


def _body(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "model": "demo",
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": 256,
        **fields,
    }


_TWO_TOOLS = [_tool("get_weather", "Weather forecast of a city"), _tool("send_email", "Send an e-mail")]
_PERSON_FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}


@dataclass(frozen=True, slots=True)
class Step:
    """One request of the demo. ``kind`` says how the answer is checked."""

    title: str
    kind: str
    body: dict[str, Any]


STEPS = (
    Step(
        "A tool call (tool_choice: required, two tools)",
        "tool",
        _body("What is the weather in Paris?", tools=_TWO_TOOLS, tool_choice="required"),
    ),
    Step(
        "A structured output (response_format: json_schema)",
        "schema",
        _body("Ada is 36 and speaks English and French.", response_format=_PERSON_FORMAT),
    ),
    Step(
        "The same, streamed",
        "schema",
        _body("Linus is 21 and speaks Finnish.", response_format=_PERSON_FORMAT, stream=True),
    ),
)


class CheckFailedError(Exception):
    """An answer that does not hold."""


@click.command("demo")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0: any free port.")
@THREADS
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of panels.")
def command(port: int, threads: int, as_json: bool) -> None:
    """Start a server on the embedded model, send it a tool call, a schema and a stream, check all three.

    Exit status 0 means that every answer was valid against its schema.
    """
    log.configure("warning")
    console = Console(stderr=as_json)
    with TerminalProgress(console) as progress:
        path = demo_model(env.cache_dir(), progress)
    config = ServerConfig(
        served_name="demo",
        engine=EngineConfig(model=path, slots=2, llama_cpp=LlamaCppConfig(threads=threads)),
        http=HttpConfig(port=port),
    )
    with console.status("starting the server"):
        server = launch.BackgroundServer(config)
        url = server.start()
    try:
        console.print(f"Server: [bold]{url}/v1[/bold]  model: demo ({path.name})")
        with ChatClient(url) as client:
            results = [_run(console, client, step) for step in STEPS]
    finally:
        server.stop()
    held = sum(result["held"] for result in results)
    if as_json:
        click.echo(json.dumps({"held": held, "of": len(results), "results": results}, ensure_ascii=False))
    console.print(f"[bold]{held} of {len(results)} answers hold to their schema.[/bold]")
    if held != len(results):
        raise SystemExit(1)


def _run(console: Console, client: ChatClient, step: Step) -> dict[str, Any]:
    console.rule(step.title)
    console.print(Panel(_json(step.body), title="request", title_align="left", border_style="blue"))
    answer = Answer()
    try:
        if step.body.get("stream"):
            list(client.stream(step.body, answer))
        else:
            answer = client.ask(step.body)
        verdict = _check(step.kind, answer)
        held = True
    except (CheckFailedError, AnswerError) as error:
        verdict, held = str(error), False
    shown = _shown(answer)
    console.print(
        Panel(_json(shown), title="answer", title_align="left", border_style="green" if held else "red")
    )
    console.print(f"[{'green' if held else 'red'}]{'holds' if held else 'FAILS'}[/]: {verdict}", soft_wrap=True)
    return {"title": step.title, "request": step.body, "answer": shown, "verdict": verdict, "held": held}


def _shown(answer: Answer) -> dict[str, Any]:
    names = ("content", "tool_calls", "finish_reason", "chunks")
    return {name: value for name, value in asdict(answer).items() if name in names and value}


def _check(kind: str, answer: Answer) -> str:
    """What holds, in words; raises ``CheckFailedError``."""
    if answer.finish_reason not in ("stop", "tool_calls"):
        raise CheckFailedError(f"finish_reason is {answer.finish_reason!r}")
    if kind == "schema":
        return _valid(answer.content, PERSON, "content")
    if not answer.tool_calls:
        raise CheckFailedError("no tool call")
    for call in answer.tool_calls:
        if call["name"] not in TOOLS:
            raise CheckFailedError(f"unknown tool {call['name']!r}")
        _valid(call["arguments"], TOOLS[call["name"]], f"arguments of {call['name']}")
    names = ", ".join(call["name"] for call in answer.tool_calls)
    return f"{names}: arguments valid against the declared parameters"


def _valid(text: str, schema: dict[str, Any], what: str) -> str:
    if error := validation_error(text, schema):
        raise CheckFailedError(f"{what}: {error}")
    return f"{what} valid against its schema"


def _json(value: Any) -> Syntax:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return Syntax(text, "json", word_wrap=True, background_color="default")
