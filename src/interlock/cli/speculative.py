"""``--speculative-config``: JSON, in vLLM's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import click

from interlock.config import MAX_SPECULATIVE_TOKENS, SpeculativeConfig, SpeculativeMethod

METHODS: tuple[str, ...] = get_args(SpeculativeMethod)
_INTEGERS = {
    "num_speculative_tokens": MAX_SPECULATIVE_TOKENS,
    "prompt_lookup_min": 32,
    "prompt_lookup_max": 32,
}


class SpeculativeType(click.ParamType["SpeculativeConfig | None"]):
    """JSON text to a ``SpeculativeConfig``; ``off`` to ``None``."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> SpeculativeConfig | None:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return speculative_config(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def speculative_config(text: str) -> SpeculativeConfig | None:
    """Raises ``ValueError`` that says what is wrong."""
    if text == "off":
        return None
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError('a JSON object, like {"method": "ngram", "num_speculative_tokens": 5}')
    known = {"method", "model", "adaptive", *_INTEGERS}
    if unknown := fields.keys() - known:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    methods = _methods(fields.pop("method", None))
    model = fields.pop("model", None)
    if ("draft_model" in methods) != isinstance(model, str):
        raise ValueError(
            '"model", the path of a GGUF file or a folder, goes with the method draft_model, and only with it'
        )
    adaptive = fields.pop("adaptive", True)
    if not isinstance(adaptive, bool):
        raise ValueError('"adaptive" is true or false')
    config = SpeculativeConfig(
        methods=methods,
        model=None if model is None else Path(model),
        adaptive=adaptive,
        **{name: _integer(name, value) for name, value in fields.items()},
    )
    if config.prompt_lookup_min > config.prompt_lookup_max:
        raise ValueError("prompt_lookup_min is more than prompt_lookup_max")
    return config


def _methods(value: Any) -> tuple[SpeculativeMethod, ...]:
    """One name, or several that are asked in this order."""
    names = value if isinstance(value, list) else [value]
    if not names or len(set(map(str, names))) < len(names) or any(name not in METHODS for name in names):
        raise ValueError(f'"method" is one of {", ".join(METHODS)}, or a list of them')
    return tuple(names)


def _integer(name: str, value: Any) -> int:
    most = _INTEGERS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f'"{name}" is a whole number from 1 to {most}, not {json.dumps(value)}')
    return value
