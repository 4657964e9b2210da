"""The fields that chat completions and completions share, to what a ``GenerateRequest`` is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from interlock.api.openai.wire import WireGeneration
from interlock.api.validation import invalid_body
from interlock.core.request import JsonPolicy
from interlock.core.sampling import SamplingOptions
from interlock.errors import InterlockError

MAX_ANSWERS = 64
MAX_STOP_STRINGS = 16
MAX_LOGIT_BIAS = 1024

W = TypeVar("W", bound=BaseModel)


def validated(model: type[W], data: dict[str, Any]) -> W:
    """Raises ``InterlockError`` for the field that is wrong."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid_body(error, data) from None


def read_sampling(wire: WireGeneration, logprobs: int | None) -> SamplingOptions:
    return SamplingOptions(
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        min_p=wire.min_p,
        frequency_penalty=wire.frequency_penalty,
        presence_penalty=wire.presence_penalty,
        repetition_penalty=wire.repetition_penalty,
        logit_bias=_logit_bias(wire.logit_bias or {}),
        seed=wire.seed,
        logprobs=logprobs,
    )


def read_json_policy(wire: WireGeneration) -> JsonPolicy:
    return JsonPolicy() if wire.interlock is None else JsonPolicy(**wire.interlock.model_dump())


def read_num_answers(wire: WireGeneration, most: int = MAX_ANSWERS) -> int:
    n = 1 if wire.n is None else wire.n
    if not 1 <= n <= most:
        raise InterlockError("invalid_value", f"n must be in [1, {most}], not {n}", param="n")
    return n


def read_include_usage(wire: WireGeneration) -> bool:
    options = wire.stream_options
    if options is not None and not wire.stream:
        raise InterlockError(
            "invalid_value", "stream_options is only allowed with stream: true", param="stream_options"
        )
    return bool(options and options.include_usage)


def read_stop(wire: str | list[str] | None, param: str = "stop") -> tuple[str, ...]:
    stop = (wire,) if isinstance(wire, str) else tuple(wire or ())
    if len(stop) > MAX_STOP_STRINGS:
        raise InterlockError("invalid_value", f"{param} has more than {MAX_STOP_STRINGS} strings", param=param)
    if "" in stop:
        raise InterlockError("invalid_value", f"{param} must not have an empty string", param=param)
    return stop


def _logit_bias(wire: Mapping[str, float]) -> tuple[tuple[int, float], ...]:
    if len(wire) > MAX_LOGIT_BIAS:
        raise InterlockError(
            "invalid_value", f"logit_bias has more than {MAX_LOGIT_BIAS} tokens", param="logit_bias"
        )
    for key in wire:
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise InterlockError(
                "invalid_value",
                f"logit_bias has the key {key[:40]!r}, which is no token id",
                param="logit_bias",
            )
    return tuple((int(key), bias) for key, bias in wire.items())
