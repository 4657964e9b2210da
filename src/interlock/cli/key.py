"""``interlock key``."""

from __future__ import annotations

import click

from interlock.settings.keys import hash_of, new_key


@click.command("key")
def command() -> None:
    """Make an API key, and the line for --api-key-file.

    The key is shown once. The line holds only its hash and may be kept with the configuration.
    """
    key = new_key()
    click.echo(f"key:  {key}")
    click.echo(f"line: {hash_of(key)}")
