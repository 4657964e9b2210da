"""Log probabilities of a prompt's tokens, as vLLM has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlock.api.fields import unsupported
from interlock.api.openai.wire import WireGeneration
from interlock.core.events import ScoredToken


def read_prompt_logprobs(wire: WireGeneration) -> int | None:
    """How many alternatives of each token are asked for. Raises ``unsupported_parameter`` for a stream."""
    if wire.prompt_logprobs is not None and wire.stream:
        raise unsupported("prompt_logprobs", "leave `stream` out: they come with the whole answer")
    return wire.prompt_logprobs


def prompt_logprobs_object(tokens: Iterable[ScoredToken]) -> list[dict[str, Any] | None]:
    """For each token its own entry and the best ones, by id; null for the first, before which nothing stands."""
    return [None if token.logprob is None else _entries(token, token.logprob) for token in tokens]


def _entries(token: ScoredToken, logprob: float) -> dict[str, Any]:
    own = {str(token.token_id): _entry(token.data, logprob, token.rank)}
    best = {str(one): _entry(data, value, rank) for rank, (one, data, value) in enumerate(token.top, start=1)}
    return best | own


def _entry(data: bytes, logprob: float, rank: int | None) -> dict[str, Any]:
    return {"logprob": logprob, "rank": rank, "decoded_token": data.decode(errors="replace")}
