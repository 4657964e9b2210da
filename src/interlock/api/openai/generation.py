"""The fields that chat completions and completions share, to what a ``GenerateRequest`` is made of."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.api.openai.wire import WireGeneration
from interlock.core.sampling import SamplingOptions
from interlock.errors import InterlockError

MAX_ANSWERS = 64
MAX_LOGIT_BIAS = 1024


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
