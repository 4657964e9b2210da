"""``interlock key``."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.cli.shared import FILE
from interlock.settings.keys import add_key, hash_of, new_key, read_keys, remove_key

_FILE = click.option(
    "--file",
    "path",
    required=True,
    type=FILE,
    help="The file of --api-key-file.",
)
_HASH_DIGITS = 12


@click.group("key", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Make an API key, and the line for --api-key-file.

    The key is shown once. The line holds only its hash and may be kept with the configuration. A server reads the file
    when it starts.
    """
    if context.invoked_subcommand is None:
        key = new_key()
        click.echo(f"key:  {key}")
        click.echo(f"line: {hash_of(key)}")


@command.command("new")
@_FILE
@click.option("--label", default="", help="Whose key it is, for `list` and `remove`.")
def new(path: Path, label: str) -> None:
    """Make an API key and add its line to a file, which is made where there is none."""
    click.echo(f"key: {add_key(path, ' '.join(label.replace('#', ' ').split()))}")


@command.command("list")
@_FILE
def list_(path: Path) -> None:
    """Show the keys of a file: the beginning of each hash, and its label."""
    for key in read_keys(path):
        click.echo(f"{key.hash.removeprefix('sha256:')[:_HASH_DIGITS]}  {key.label}".rstrip())


@command.command("remove")
@click.argument("which")
@_FILE
def remove(which: str, path: Path) -> None:
    """Take the key WHICH out of a file: its label, or the beginning of its hash."""
    key = remove_key(path, which)
    click.echo(f"removed {key.hash.removeprefix('sha256:')[:_HASH_DIGITS]}  {key.label}".rstrip())
