"""The ``interlock`` command: a group whose commands are imported when they are used."""

from __future__ import annotations

import importlib

import click

from interlock import __version__
from interlock.errors import InterlockError

COMMANDS: dict[str, str] = {
    "serve": "Serve a model over HTTP.",
    "demo": "Start a server on a small embedded model, send it a tool call and a schema, check both.",
    "run": "Ask a model once, held to a schema, tools, a regex or a grammar.",
    "bench": "Measure a running server: latency, throughput, share of valid answers.",
    "trace": "Show a saved trace: what the constraint changed, token by token.",
    "check": "Show how a JSON Schema is enforced, and whether documents are generated under it.",
    "parse": "Parse raw model text on standard input into content, reasoning and tool calls.",
    "render": "Render a conversation on standard input to a prompt.",
    "key": "Make API keys; list and remove those of a file.",
    "formats": "List the model families and their tool-call formats.",
}


class _LazyGroup(click.Group):
    """``interlock --help`` must not import a server."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"interlock.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except InterlockError as error:
            raise click.ClickException(error.message + (f"\n{error.hint}" if error.hint else "")) from error


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="interlock")
def main() -> None:
    """An LLM server whose tool calls and structured outputs cannot come out wrong."""
