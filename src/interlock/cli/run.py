"""``interlock run``: one prompt, held to a schema, a tool set, a regex or a grammar, written as it comes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from interlock import env, launch, log
from interlock.cli.client import Answer, AnswerError, ChatClient, validation_error
from interlock.cli.shared import API_KEY, EXISTING_FILE, FILE, MAX_TOKENS_HELP, THREADS
from interlock.config import EngineConfig, HttpConfig, LlamaCppConfig, ServerConfig, TorchConfig
from interlock.provision.progress import TerminalProgress
from interlock.provision.resolve import resolve_model

_STYLES = {"reasoning": "dim italic", "content": "", "call": "bold cyan", "arguments": "cyan"}


@click.command("run")
@click.argument("model")
@click.argument("prompt")
@click.option("--system", default=None, help="System message.")
@click.option("--schema", type=EXISTING_FILE, help="The answer is a document of this JSON Schema.")
@click.option(
    "--tools",
    type=EXISTING_FILE,
    help="The answer calls one of these tools: a JSON list, as OpenAI's API has it.",
)
@click.option("--regex", default=None, help="The answer is a text of this regular expression.")
@click.option(
    "--grammar", type=EXISTING_FILE, help="The answer is a text of this grammar (Lark, GBNF or EBNF)."
)
@click.option("--max-tokens", default=512, show_default=True, type=click.IntRange(1), help=MAX_TOKENS_HELP)
@click.option(
    "--temperature", default=0.0, show_default=True, type=click.FloatRange(0, 2), help="0: the likeliest token."
)
@click.option("--seed", default=None, type=int, help="The same seed gives the same answer.")
@click.option(
    "--trace",
    type=FILE,
    help="Save here what the constraint changed at each token, for interlock trace.",
)
@THREADS
@API_KEY
@click.option("--served", default=None, help="Which model of a server; default: the first that it lists.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document at the end instead of the stream."
)
def command(model: str, prompt: str, threads: int, api_key: str, as_json: bool, **options: Any) -> None:
    """Ask MODEL once and print the answer as it comes.

    MODEL is what `interlock serve` takes (`demo`, a GGUF file, `org/repo/file.gguf`), or the URL of a running server.

    Exits with 1 if the answer was refused, was cut short, or is not valid against the schema.
    """
    body = _body(prompt, options)
    console = Console(stderr=as_json)
    try:
        with _server(model, threads, console) as url, ChatClient(url, api_key) as client:
            body["model"] = options["served"] or client.models()[0]
            answer = Answer()
            _write(console, client, body, answer)
    except AnswerError as error:
        raise click.ClickException(str(error)) from error
    if options["trace"]:
        options["trace"].write_text(json.dumps({"trace": answer.trace}, ensure_ascii=False), "utf-8")
    problems = _problems(answer, body)
    if as_json:
        shown = {"content": answer.content, "reasoning": answer.reasoning, "tool_calls": answer.tool_calls}
        facts = {
            "finish_reason": answer.finish_reason,
            "usage": answer.usage,
            "interlock": answer.interlock,
            "problems": problems,
        }
        click.echo(json.dumps({**shown, **facts}, ensure_ascii=False))
    rate = answer.completion_tokens / max(answer.total_s, 1e-9)
    console.print(
        f"[dim]{answer.completion_tokens} tokens, first after {answer.first_s:.2f} s, {rate:.1f} tokens/s, "
        f"finish_reason {answer.finish_reason}[/]"
    )
    for remark in _remarks(answer.interlock):
        console.print(remark, style="dim", markup=False, highlight=False)
    for problem in problems:
        console.print(problem, style="red", markup=False)
    if problems:
        raise SystemExit(1)


@contextmanager
def _server(model: str, threads: int, console: Console) -> Iterator[str]:
    """The URL of the server to ask; one of our own if ``model`` is a model."""
    if model.startswith(("http://", "https://")):
        yield model
        return
    log.configure("warning")
    with TerminalProgress(console) as progress:
        path = resolve_model(model, cache=env.cache_dir(), progress=progress)
    server = launch.BackgroundServer(
        ServerConfig(
            served_name=model,
            engine=EngineConfig(
                model=path,
                slots=1,
                llama_cpp=LlamaCppConfig(threads=threads),
                torch=TorchConfig(threads=threads),
            ),
            http=HttpConfig(port=0),
        )
    )
    with console.status("loading the model"):
        url = server.start()
    try:
        yield url
    finally:
        server.stop()


def _body(prompt: str, options: dict[str, Any]) -> dict[str, Any]:
    given = [name for name in ("schema", "tools", "regex", "grammar") if options[name] is not None]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} exclude each other")
    system = [{"role": "system", "content": options["system"]}] if options["system"] else []
    body: dict[str, Any] = {
        "messages": [*system, {"role": "user", "content": prompt}],
        "max_tokens": options["max_tokens"],
        "temperature": options["temperature"],
    }
    if options["trace"]:
        body["interlock"] = {"trace": True}
    if options["seed"] is not None:
        body["seed"] = options["seed"]
    if options["schema"]:
        schema = _json(options["schema"])
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    if options["tools"]:
        body.update(tools=_json(options["tools"]), tool_choice="required")
    if options["regex"]:
        body["structured_outputs"] = {"regex": options["regex"]}
    if options["grammar"]:
        body["structured_outputs"] = {"grammar": options["grammar"].read_text("utf-8")}
    return body


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except ValueError as error:
        raise click.BadParameter(f"{path} is not JSON: {error}") from error


def _write(console: Console, client: ChatClient, body: dict[str, Any], answer: Answer) -> None:
    last = ""
    for delta in client.stream(body, answer):
        if last and delta.kind != last and delta.kind != "arguments":
            console.print()
        text = f"{delta.text} " if delta.kind == "call" else delta.text
        console.print(text, style=_STYLES[delta.kind], end="", markup=False, highlight=False, soft_wrap=True)
        last = delta.kind
    console.print()


def _remarks(report: dict[str, Any]) -> Iterator[str]:
    """What the server says about the answer, in words; see the object ``interlock`` in the API."""
    yield from (f"note: {note}" for note in report.get("notes", ()))
    for problem in report.get("unenforced", ()):
        yield f"not enforced: {problem.get('keyword', '')} at {problem.get('pointer') or '/'}"
    reason = report.get("tools", {}).get("reason")
    if reason:
        yield f"calls are held to their schemas: {reason}"


def _problems(answer: Answer, body: dict[str, Any]) -> list[str]:
    """What an own validator finds wrong with the answer, in words."""
    problems = []
    if answer.finish_reason not in ("stop", "tool_calls"):
        problems.append(
            f"the answer was cut short (finish_reason {answer.finish_reason}); try a larger --max-tokens"
        )
    elif "response_format" in body:
        problems.append(validation_error(answer.content, body["response_format"]["json_schema"]["schema"]))
    schemas = {
        tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body.get("tools", ())
    }
    if not problems:
        problems.extend(
            validation_error(call["arguments"], schemas.get(call["name"], False)) for call in answer.tool_calls
        )
    return [problem for problem in problems if problem]
