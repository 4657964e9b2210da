"""The options of ``serve --engine vllm``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from interlock import env
from interlock.cli import options as opt
from interlock.config import ServerConfig, VllmConfig
from interlock.errors import InterlockError
from interlock.provision.progress import TerminalProgress
from interlock.provision.resolve import resolve_model
from interlock.remote.discovery import ask_for_model

VLLM = (
    click.option(
        "--engine",
        "engine_name",
        default="local",
        show_default=True,
        type=click.Choice(["local", "vllm"]),
        help="What runs the model: a worker here, or vLLM at --url.",
    ),
    click.option("--url", "urls", multiple=True, help="A vLLM server. May be given several times: replicas."),
    click.option(
        "--tokenizer",
        default=None,
        metavar="MODEL",
        help="The model behind --url, for its tokenizer and template: folder, tokenizer.json or GGUF file "
        "[default: where vLLM loaded it].",
    ),
    click.option("--vllm-model", default=None, help="The model's name there [default: the first]."),
)


def vllm_config(
    urls: tuple[str, ...], tokenizer: str | None, model: str | None, options: dict[str, Any]
) -> ServerConfig:
    """Raises ``InterlockError`` where vLLM has to be asked and does not answer."""
    key = env.vllm_api_key()
    if tokenizer is None:
        model, path = ask_for_model(urls[0], key, model)
        if path is None:
            raise InterlockError(
                "invalid_value",
                f"the folder of {model} at {urls[0]} is not on this machine",
                hint="give the same model with --tokenizer; no weights are read",
            )
    elif tokenizer.endswith(".json"):
        path = Path(tokenizer)
    else:
        with TerminalProgress() as progress:
            path = resolve_model(tokenizer, cache=env.cache_dir(), progress=progress)
    config = opt.server_config(
        model or tokenizer or "", path, {**options, "served_name": options["served_name"] or model}
    )
    return replace(config, vllm=VllmConfig(urls=urls, tokenizer=path, model=model, api_key=key))
