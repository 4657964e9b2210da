"""Sampling parameters as the engine reads them: every field has a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LogprobsOf = Literal["masked", "model"]
"""Which distribution log probabilities are of: over the ids that may be chosen, or the model's over all ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """What a request says about sampling; ``None`` means the model's or server's default.

    bad_words to ignore_eos: see ``TokenLimits``. stop_token_ids: ids that end the answer beside the model's own.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    bad_words: tuple[str, ...] = ()
    allowed_token_ids: tuple[int, ...] = ()
    min_tokens: int | None = None
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    seed: int | None = None
    logprobs: int | None = None
    logprobs_of: LogprobsOf = "masked"
    prompt_logprobs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Resolved sampling parameters.

    temperature: 0 is greedy. top_p in (0, 1]; top_k 0 is off; min_p in [0, 1); typical_p in (0, 1].
    frequency_penalty and presence_penalty (OpenAI's definition, over generated tokens) in [-2, 2];
    repetition_penalty (over prompt and generated tokens) > 0, 1 is off.
    seed: unsigned 64 bit; randomness is a pure function of (seed, output position).
    logprobs: number of alternatives to report per token, ``None`` for no logprobs. prompt_logprobs: the same of the
        prompt's tokens, always of the model's own distribution.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    typical_p: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0
    logprobs: int | None = None
    logprobs_of: LogprobsOf = "masked"
    prompt_logprobs: int | None = None

    @property
    def reported_logprobs(self) -> LogprobsOf | None:
        """Which log probabilities are reported, if any."""
        return None if self.logprobs is None else self.logprobs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """What a request forbids beside its constraint.

    banned: sequences of ids whose last one is not chosen behind the others, which are looked for in the output.
    allowed: ids that may be chosen, all where it is empty. A constraint may still end where its grammar does.
    min_tokens: before that many output tokens no stop id is chosen; suppressed: ids that never are. Both give way
        where nothing else is left, so that they do not stand against a grammar that has come to its end.
    """

    banned: tuple[tuple[int, ...], ...] = ()
    allowed: tuple[int, ...] = ()
    min_tokens: int = 0
    suppressed: tuple[int, ...] = ()
