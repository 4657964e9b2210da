"""The ``interlock`` command: a group whose commands are imported when they are used."""

from __future__ import annotations

import difflib
import importlib

import click

from interlock import __version__
from interlock.errors import InterlockError

EXAMPLES: dict[str, tuple[str, ...]] = {
    "serve": (
        "interlock serve demo",
        "interlock serve model.gguf --tool-constraints all --api-key-file keys",
        "interlock serve --model small=a.gguf --model large=b.gguf --load on-demand --unload-after 600",
    ),
    "demo": ("interlock demo", "interlock demo --json"),
    "run": (
        'interlock run demo "Name three colours" --schema colours.json',
        'interlock run http://127.0.0.1:8000 "Weather in Oslo?" --tools tools.json',
        'interlock run demo "A date" --regex "[0-9]{4}-[0-9]{2}-[0-9]{2}" --trace date.json',
    ),
    "bench": ("interlock bench http://127.0.0.1:8000 --concurrency 1,8 --plot bench.svg",),
    "trace": ("interlock trace date.json --tokens",),
    "check": (
        "interlock check schema.json",
        "interlock check schema.json --instance good.json --instance bad.json",
    ),
    "parse": ("interlock parse --family qwen3 < answer.txt",),
    "render": ("interlock render --model demo --tools tools.json < messages.json",),
    "key": (
        "interlock key new --file keys --label agents",
        "interlock key list --file keys",
        "interlock key remove agents --file keys",
    ),
    "formats": ("interlock formats", "interlock formats --model model.gguf"),
}
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
        command.epilog = "\b\n" + "\n".join(("Examples:", *(f"  {line}" for line in EXAMPLES[cmd_name])))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

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
    """An LLM server whose tool calls and structured outputs cannot come out wrong.

    Start with `interlock demo`, then `interlock serve demo` and open http://127.0.0.1:8000/admin. Each command shows
    examples with --help.
    """
