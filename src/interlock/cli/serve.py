"""``interlock serve MODEL``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from interlock import env, launch, log
from interlock.cli import options as opt
from interlock.cli.vllm import VLLM, vllm_config
from interlock.provision.progress import TerminalProgress
from interlock.provision.resolve import resolve_model


@click.command("serve")
@click.argument("model", required=False)
@click.option(
    "--model",
    "named",
    multiple=True,
    metavar="NAME=MODEL",
    help="A model under a name of your choice. May be given several times.",
)
@opt.stack(*VLLM)
@opt.stack(*opt.HTTP, *opt.LOAD, *opt.ENGINE, *opt.POLICY, *opt.LOG)
def command(
    model: str | None,
    named: tuple[str, ...],
    engine_name: str,
    urls: tuple[str, ...],
    tokenizer: str | None,
    vllm_model: str | None,
    log_level: str | None,
    log_format: log.LogFormat,
    **options: Any,
) -> None:
    """Serve MODEL over HTTP, or several models with --model.

    MODEL is the path of a GGUF file, of a Hugging Face folder with safetensors (extra `torch`), `org/repo/file.gguf` on
    the Hugging Face hub, or `demo`. With --engine vllm the model is at the --url,
    and only its tokenizer is needed here.
    """
    log.configure(log_level or env.log_level(), log_format)
    if engine_name == "vllm":
        if model is not None or named or not urls:
            raise click.UsageError("--engine vllm takes --url and --tokenizer, and no MODEL.")
        launch.run(vllm_config(urls, tokenizer, vllm_model, options))
        return
    if urls or tokenizer is not None or vllm_model is not None:
        raise click.UsageError("--url, --tokenizer and --vllm-model are for --engine vllm.")
    wanted = [(options["served_name"], model)] if model is not None else []
    wanted += [_named(text) for text in named]
    if not wanted:
        raise click.UsageError("Name a model: interlock serve MODEL, or --model NAME=MODEL.")
    with TerminalProgress() as progress:
        paths = [resolve_model(source, cache=env.cache_dir(), progress=progress) for _, source in wanted]
    (first, source), *others = wanted
    config = opt.server_config(source, paths[0], {**options, "served_name": first})
    more = tuple((str(name), path) for (name, _), path in zip(others, paths[1:], strict=True))
    launch.run(replace(config, more_models=more))


def _named(text: str) -> tuple[str, str]:
    name, _, source = text.partition("=")
    if not name.strip() or not source.strip():
        raise click.BadParameter(f"{text!r} is not NAME=MODEL", param_hint="--model")
    return name.strip(), source.strip()
