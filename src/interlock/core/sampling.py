"""Sampling parameters as the engine reads them: every field has a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """What a request says about sampling; ``None`` means the model's or server's default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    logprobs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Resolved sampling parameters.

    temperature: 0 is greedy. top_p in (0, 1]; top_k 0 is off; min_p in [0, 1).
    frequency_penalty and presence_penalty (OpenAI's definition, over generated tokens) in [-2, 2];
    repetition_penalty (over prompt and generated tokens) > 0, 1 is off.
    seed: unsigned 64 bit; randomness is a pure function of (seed, output position).
    logprobs: number of alternatives to report per token, ``None`` for no logprobs.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0
    logprobs: int | None = None
