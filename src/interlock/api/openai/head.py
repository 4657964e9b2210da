"""What the objects of chat completions and completions have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from interlock.core.events import ScoredToken
from interlock.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """id, created (Unix seconds) and model of all objects of one answer."""

    id: str
    created: int
    model: str

    def object(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, **fields}


def usage_object(usages: Iterable[Usage]) -> dict[str, Any]:
    """The usage of several answers to one prompt, which counts once."""
    first, *others = usages
    completion = first.completion_tokens + sum(usage.completion_tokens for usage in others)
    reasoning = first.reasoning_tokens + sum(usage.reasoning_tokens for usage in others)
    return {
        "prompt_tokens": first.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": first.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": first.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def token_objects(tokens: Iterable[ScoredToken]) -> list[dict[str, Any]]:
    """``logprobs.content`` of a chat completion, ``logprobs`` of a response's text."""
    return [
        {
            **_token(token.data, token.logprob),
            "top_logprobs": [_token(data, logprob) for _, data, logprob in token.top],
        }
        for token in tokens
    ]


def _token(data: bytes, logprob: float | None) -> dict[str, Any]:
    return {"token": data.decode(errors="replace"), "logprob": logprob, "bytes": list(data)}
