"""Options of ``serve`` and ``demo``. An option is named as the configuration field that it sets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from interlock import env
from interlock.cli.document import DocumentType
from interlock.cli.limits import COMPILE_TIMEOUT, SCHEMA_LIMITS, schema_limits
from interlock.cli.memory import prompt_cache_bytes
from interlock.cli.shared import EXISTING_FILE, FILE, THREADS
from interlock.cli.speculative import SpeculativeType
from interlock.config import (
    CompileConfig,
    EngineConfig,
    FakeConfig,
    GenerationDefaults,
    HttpConfig,
    LlamaCppConfig,
    LoadConfig,
    ResponseStoreConfig,
    ServerConfig,
    TorchConfig,
)
from interlock.settings.keys import read_hashes

_T = TypeVar("_T")
_Function = Callable[..., Any]

_KV_TYPES = click.Choice(["f16", "f32", "bf16", "q8_0", "q4_0"])


def _origins(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for origin in value:
        if origin != "*" and not re.fullmatch(r"https?://[^/\s?#@]+", origin):
            raise click.BadParameter(f"{origin!r} is no origin like https://app.example.com; * is any")
    return value


HTTP = (
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option(
        "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any free port."
    ),
    click.option("--served-name", default=None, help="The model's name in the API (default: from MODEL)."),
    click.option(
        "--max-body-bytes", default=8 << 20, show_default=True, type=click.IntRange(1), help="Largest body."
    ),
    click.option(
        "--max-concurrent",
        default=None,
        type=click.IntRange(1),
        help="Requests at once, of each model [default: slots and queue].",
    ),
    click.option(
        "--api-key-file",
        default=None,
        type=FILE,
        help="Hashes of API keys, one a line; see interlock key.",
    ),
    click.option(
        "--responses-file",
        default=None,
        type=FILE,
        help="SQLite file for stored responses [default: memory].",
    ),
    click.option(
        "--ssl-certfile",
        default=None,
        type=EXISTING_FILE,
        help="Serve over TLS: the certificate with its chain, PEM.",
    ),
    click.option(
        "--ssl-keyfile",
        default=None,
        type=EXISTING_FILE,
        help="Its key, PEM without a password.",
    ),
    click.option(
        "--allow-origin",
        "allow_origins",
        multiple=True,
        callback=_origins,
        help="A site whose scripts may read answers, such as https://app.example.com. May be given several times.",
    ),
    click.option(
        "--header-timeout-s",
        default=20.0,
        show_default=True,
        type=click.FloatRange(0, min_open=True),
        help="Seconds a client may take to send the head of a request.",
    ),
    click.option(
        "--body-timeout-s",
        default=60.0,
        show_default=True,
        type=click.FloatRange(0, min_open=True),
        help="Seconds a client may take to send the body.",
    ),
    click.option(
        "--write-timeout-s",
        default=120.0,
        show_default=True,
        type=click.FloatRange(0, min_open=True),
        help="Seconds a client may take none of its answer before it is cut off.",
    ),
    click.option("--request-timeout-s", default=600.0, show_default=True, help="Seconds a request may take."),
    click.option(
        "--drain-s", default=20.0, show_default=True, help="Seconds running requests get at shutdown."
    ),
)
ENGINE = (
    click.option(
        "--slots", default=8, show_default=True, type=click.IntRange(1, 256), help="Sequences at once."
    ),
    click.option(
        "--context-tokens", default=0, help="Tokens of one sequence; 0: the model's own, at most 8192."
    ),
    click.option(
        "--max-batch-tokens", default=512, show_default=True, type=click.IntRange(1), help="Per step."
    ),
    click.option(
        "--max-waiting", default=256, show_default=True, type=click.IntRange(0), help="Length of the queue."
    ),
    click.option(
        "--max-kv-tokens",
        default=0,
        show_default=True,
        type=click.IntRange(0),
        help="Tokens of all sequences together; 0: what the slots hold.",
    ),
    click.option(
        "--prefix-cache/--no-prefix-cache",
        default=True,
        show_default=True,
        help="Reuse what an earlier request computed.",
    ),
    click.option(
        "--prompt-cache-ram",
        "prompt_cache_bytes",
        default=None,
        metavar="MIB",
        type=click.IntRange(0),
        callback=prompt_cache_bytes,
        help="Memory of all models together for prompts that no slot holds any more; 0: none"
        " [default: an eighth of the machine's, at most 8192].",
    ),
    click.option(
        "--fairness-tokens",
        default=512,
        show_default=True,
        type=click.IntRange(0),
        help="Tokens until a request gives its slot to one that waits; 0: never.",
    ),
    click.option(
        "--max-worker-deaths",
        default=2,
        show_default=True,
        type=click.IntRange(1),
        help="Worker deaths that a request may be in flight in until it is not resumed again.",
    ),
    click.option(
        "--worker-hang-s",
        default=300.0,
        show_default=True,
        type=click.FloatRange(0),
        help="Seconds without progress until a worker is ended and started again; 0: never.",
    ),
    THREADS,
    click.option("--gpu-layers", default=0, show_default=True, help="Layers on the GPU; -1: all."),
    click.option(
        "--flash-attention",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "on", "off"]),
        help="auto: where the backend is faster with it.",
    ),
    click.option("--kv-type-k", default="f16", show_default=True, type=_KV_TYPES, help="Type of cached keys."),
    click.option(
        "--kv-type-v", default="f16", show_default=True, type=_KV_TYPES, help="Type of cached values."
    ),
    click.option(
        "--library",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "xllamacpp", "llama-cpp-python"]),
        help="Which package brings llama.cpp.",
    ),
    click.option(
        "--forced-tokens/--no-forced-tokens",
        default=True,
        show_default=True,
        help="Take what a grammar forces without sampling it.",
    ),
    click.option(
        "--speculative-config",
        "speculative",
        default=None,
        type=SpeculativeType(),
        help='Guess tokens ahead: JSON like {"method": "ngram", "num_speculative_tokens": 5}, or off.',
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        help="Device of torch: auto (an accelerator where there is one), cpu, cuda, cuda:1, mps, ...",
    ),
    click.option(
        "--dtype",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
        help="Of torch's weights and cache; auto: float32 on CPUs, else the model's own.",
    ),
    click.option(
        "--static-shapes/--no-static-shapes",
        default=None,
        help="Decode in few fixed shapes, on CUDA replayed as graphs [default: on CUDA only].",
    ),
    click.option(
        "--torch-compile", "compile", is_flag=True, help="Run torch's decode steps through torch.compile."
    ),
    click.option(
        "--runner",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "llama_cpp", "torch", "fake"]),
        help="auto: torch for a model folder, else llama_cpp.",
    ),
    click.option(
        "--script",
        default=None,
        type=FILE,
        help="Script of the fake runner.",
    ),
)
DOCUMENTS = click.option(
    "--document",
    "documents",
    multiple=True,
    type=DocumentType(),
    help="A schema that references may name: URI=FILE. May be given several times.",
)
LOAD = (
    click.option(
        "--load",
        default="start",
        show_default=True,
        type=click.Choice(["start", "on-demand"]),
        help="on-demand: a model is loaded by its first request.",
    ),
    click.option(
        "--unload-after",
        "unload_after_s",
        default=None,
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Unload a model that is idle; its next request loads it again [default: never].",
    ),
)
POLICY: tuple[Callable[[_Function], _Function], ...] = (
    click.option(
        "--family", default=None, help="Model family (default: chosen from MODEL); see interlock formats."
    ),
    click.option(
        "--tool-constraints",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "all", "off"]),
        help="all: every tool call of every request is held to its schema. For agents.",
    ),
    click.option(
        "--open-objects/--closed-objects", default=False, help="Allow keys that a schema does not declare."
    ),
    click.option(
        "--schema-mode",
        default="exact",
        show_default=True,
        type=click.Choice(["exact", "relaxed"]),
        help="relaxed: what of a schema cannot be held is left out and reported, instead of refused.",
    ),
    click.option(
        "--close-on-length",
        default="answers",
        show_default=True,
        type=click.Choice(["off", "answers", "all"]),
        help="What is brought to a legal end when the tokens run out; all: tool calls too.",
    ),
    DOCUMENTS,
    *SCHEMA_LIMITS,
    COMPILE_TIMEOUT,
    click.option(
        "--default-max-tokens",
        "max_tokens",
        default=None,
        type=click.IntRange(1),
        help="Length of answers whose request names none [default: all that the context leaves].",
    ),
    click.option(
        "--reasoning-field",
        default="reasoning_content",
        show_default=True,
        type=click.Choice(["reasoning_content", "reasoning"]),
        help="Name of the thinking text in answers.",
    ),
)
LOG = (
    click.option(
        "--log-level",
        default=None,
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="[default: info]",
    ),
    click.option(
        "--log-format",
        default="text",
        show_default=True,
        type=click.Choice(["text", "json"]),
        help="json: one object a line, for log collectors.",
    ),
)


def stack(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """One decorator for many options, shown in the order given."""

    def decorate(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def server_config(model: str, path: Path, options: dict[str, Any]) -> ServerConfig:
    """The configuration that ``options`` (all of HTTP, ENGINE and POLICY) say. API keys come from the environment."""
    runner: dict[str, Any] = {
        "llama_cpp": _pick(LlamaCppConfig, options),
        "torch": _pick(TorchConfig, options),
        "fake": FakeConfig(
            mode="scripted" if options["script"] else "uniform",
            script=options["script"],
            tokenizer=path if path.suffix != ".gguf" else None,
        ),
    }
    return ServerConfig(
        served_name=options["served_name"] or (model if model == "demo" else _name_of(path)),
        family=options["family"],
        engine=_pick(EngineConfig, options, model=path, **runner),
        compile=_pick(CompileConfig, options, schema_limits=schema_limits(options)),
        http=_http(options),
        load=_pick(LoadConfig, options, on_demand=options.get("load") == "on-demand"),
        settings=env.settings_path(),
        defaults=_pick(GenerationDefaults, options),
    )


def _name_of(path: Path) -> str:
    """A folder's name may have dots in it: Qwen2.5-7B."""
    return path.resolve().name if path.is_dir() else path.stem


def _http(options: dict[str, Any]) -> HttpConfig:
    """max_concurrent: what the slots and the queue hold, else one of the two limits would never be met."""
    file = options["api_key_file"]
    limit = options["max_concurrent"] or options["slots"] + options["max_waiting"]
    return _pick(
        HttpConfig,
        {**options, "max_concurrent": limit},
        api_keys=env.api_keys() + (read_hashes(file) if file else ()),
        admin_keys=env.admin_keys(),
        responses=ResponseStoreConfig(path=options["responses_file"]),
    )


def _pick(cls: type[_T], options: dict[str, Any], **extra: Any) -> _T:
    names = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in options.items() if name in names}, **extra)
