"""``interlock serve MODEL``."""

from __future__ import annotations

from typing import Any

import click

from interlock import env, launch, log
from interlock.cli import options as opt
from interlock.provision.progress import TerminalProgress
from interlock.provision.resolve import resolve_model


@click.command("serve")
@click.argument("model")
@opt.stack(*opt.HTTP, *opt.ENGINE, *opt.POLICY, opt.LOG_LEVEL)
def command(model: str, log_level: str | None, **options: Any) -> None:
    """Serve MODEL over HTTP.

    MODEL is the path of a GGUF file, `org/repo/file.gguf` on the Hugging Face hub, or `demo`.
    """
    log.configure(log_level or env.log_level())
    with TerminalProgress() as progress:
        path = resolve_model(model, cache=env.cache_dir(), progress=progress)
    launch.run(opt.server_config(model, path, options))
