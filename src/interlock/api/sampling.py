"""``WireSampling`` to what a ``GenerateRequest`` is made of."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.api.wire import WireInterlock, WireSampling
from interlock.core.request import TextOptions
from interlock.core.sampling import SamplingOptions
from interlock.errors import InterlockError

MAX_LOGIT_BIAS = 1024


def read_sampling(
    wire: WireSampling,
    logprobs: int | None = None,
    interlock: WireInterlock | None = None,
    prompt_logprobs: int | None = None,
    *,
    prefix: str = "",
) -> SamplingOptions:
    """logprobs, prompt_logprobs: alternatives to report, ``None`` for no log probabilities. prefix: of the fields' names
    in the body. Raises ``invalid_value``."""
    return SamplingOptions(
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        min_p=wire.min_p,
        typical_p=wire.typical_p,
        frequency_penalty=wire.frequency_penalty,
        presence_penalty=wire.presence_penalty,
        repetition_penalty=wire.repetition_penalty,
        logit_bias=_logit_bias(wire.logit_bias or {}, f"{prefix}logit_bias"),
        bad_words=tuple(wire.bad_words or ()),
        allowed_token_ids=tuple(wire.allowed_token_ids or ()),
        min_tokens=wire.min_tokens,
        ignore_eos=bool(wire.ignore_eos),
        stop_token_ids=tuple(wire.stop_token_ids or ()),
        seed=wire.seed,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        logprobs_of=(interlock and interlock.logprobs) or "masked",
    )


def read_text_options(wire: WireSampling) -> TextOptions:
    return TextOptions(
        include_stop=bool(wire.include_stop_str_in_output), special_tokens=wire.skip_special_tokens is False
    )


def _logit_bias(wire: Mapping[str, float], param: str) -> tuple[tuple[int, float], ...]:
    if len(wire) > MAX_LOGIT_BIAS:
        raise InterlockError("invalid_value", f"{param} has more than {MAX_LOGIT_BIAS} tokens", param=param)
    for key in wire:
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise InterlockError(
                "invalid_value", f"{param} has the key {key[:40]!r}, which is no token id", param=param
            )
    return tuple((int(key), bias) for key, bias in wire.items())
