"""Sampling options to parameters: ranges checked, defaults filled in.

``temperature`` ends at 2 as in OpenAI's API: above that the answer is noise. ``top_k`` takes -1 for off
beside 0, as clients of other servers write it. A request without a seed gets a random one.
"""

from __future__ import annotations

import math
import secrets
from typing import NoReturn

from interlock.core.sampling import SamplingOptions, SamplingParams
from interlock.errors import InterlockError

MAX_TOP_LOGPROBS = 20
_SEED_BITS = 64


def resolve_sampling(options: SamplingOptions, vocab_size: int) -> SamplingParams:
    """Raises ``invalid_value`` with the name of the field that is out of range."""
    return SamplingParams(
        temperature=_number("temperature", options.temperature, 1.0, 0.0, 2.0),
        top_p=_number("top_p", options.top_p, 1.0, 0.0, 1.0, low_open=True),
        top_k=_top_k(options.top_k),
        min_p=_number("min_p", options.min_p, 0.0, 0.0, 1.0, high_open=True),
        typical_p=_number("typical_p", options.typical_p, 1.0, 0.0, 1.0, low_open=True),
        frequency_penalty=_number("frequency_penalty", options.frequency_penalty, 0.0, -2.0, 2.0),
        presence_penalty=_number("presence_penalty", options.presence_penalty, 0.0, -2.0, 2.0),
        repetition_penalty=_number(
            "repetition_penalty", options.repetition_penalty, 1.0, 0.0, 2.0, low_open=True
        ),
        logit_bias=_logit_bias(options.logit_bias, vocab_size),
        seed=_seed(options.seed),
        logprobs=_logprobs(options.logprobs),
        logprobs_of=options.logprobs_of,
        prompt_logprobs=_logprobs(options.prompt_logprobs, "prompt_logprobs"),
    )


def _number(
    name: str,
    value: float | None,
    default: float,
    low: float,
    high: float,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    if value is None:
        return default
    above = value > low if low_open else value >= low
    below = value < high if high_open else value <= high
    if not (above and below):  # also false for NaN
        brackets = f"{'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"
        _refuse(name, f"{name} must be in {brackets}, not {value:g}")
    return float(value)


def _logprobs(value: int | None, param: str = "top_logprobs") -> int | None:
    if value is not None and not 0 <= value <= MAX_TOP_LOGPROBS:
        _refuse(param, f"at most {MAX_TOP_LOGPROBS} alternatives a token are reported, not {value}")
    return value


def _top_k(value: int | None) -> int:
    if value is None or value == -1:
        return 0
    if value < 0:
        _refuse("top_k", f"top_k must be at least 0, or -1 for off, not {value}")
    return value


def _logit_bias(pairs: tuple[tuple[int, float], ...], vocab_size: int) -> tuple[tuple[int, float], ...]:
    for token_id, bias in pairs:
        if not 0 <= token_id < vocab_size:
            _refuse("logit_bias", f"logit_bias names token {token_id}, the vocabulary has {vocab_size} tokens")
        if not math.fabs(bias) <= 100:
            _refuse("logit_bias", f"logit_bias of token {token_id} must be in [-100, 100], not {bias:g}")
    return tuple((token_id, float(bias)) for token_id, bias in pairs)


def _seed(value: int | None) -> int:
    if value is None:
        return secrets.randbits(_SEED_BITS)
    if not -(1 << (_SEED_BITS - 1)) <= value < 1 << _SEED_BITS:
        _refuse("seed", "seed must fit in 64 bits")
    return value % (1 << _SEED_BITS)


def _refuse(param: str, message: str) -> NoReturn:
    raise InterlockError("invalid_value", message, param=param)
